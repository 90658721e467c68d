"""Environments, and the work that a self-hosted environment does."""
