"""The command `assent`."""
