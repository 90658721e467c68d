"""The halt."""
