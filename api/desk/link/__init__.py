"""The page of the link in a message."""
