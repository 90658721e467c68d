"""The work of self-hosted environments."""
