"""A workspace and its rows: keys, agents, environments, toolsets, stored responses."""
