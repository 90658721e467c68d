"""Agents: the list, one agent, and the form that makes and changes one."""
