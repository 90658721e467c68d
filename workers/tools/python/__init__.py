"""Toolsets of a team: typed Python functions, run in a process of their own."""
