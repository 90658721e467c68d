"""Tools that workers run: the built-in ones, Python toolsets and MCP servers. Knows nothing of approvals, nor of any row."""
