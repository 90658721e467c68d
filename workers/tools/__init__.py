"""Tools that workers run: the built-in ones, Python toolsets and MCP servers. They know no approvals and no rows."""
