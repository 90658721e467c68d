"""A tool call, from its proposal to its result."""
