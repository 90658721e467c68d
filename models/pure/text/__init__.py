"""Texts that people or models read."""
