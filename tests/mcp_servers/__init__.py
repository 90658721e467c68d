"""Tests with real MCP servers."""
