"""The page of the system: whether everything runs, as far as a workspace may see it."""
