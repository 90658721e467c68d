"""A workspace and its rows: keys, agents, environments, toolsets, stored answers to requests."""
