"""JSON values: reading, writing, their one canonical form, and their schemas."""
