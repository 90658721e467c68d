"""Sessions and their threads."""
