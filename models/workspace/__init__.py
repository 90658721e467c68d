"""A workspace and what belongs to it: keys, agents, environments, toolsets, remembered answers."""
