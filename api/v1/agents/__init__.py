"""Agents, with their tools and MCP servers."""
