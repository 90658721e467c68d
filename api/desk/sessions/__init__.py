"""Sessions and their conversations."""
