"""Ids: a prefix that names the kind, then a ULID. Ids sort by time, hold 80 random bits, and are safe in a URL."""

from ulid import ULID


def new(prefix: str) -> str:
    """Return a new id such as `sesn_01JD...`: the prefix, an underscore and 26 characters."""
    return f"{prefix}_{ULID()}"


def example(prefix: str) -> str:
    """Return an id for the examples of the API's document, always the same."""
    return f"{prefix}_01K9ZQ3T5VJ8W2X4Y6A7B8C9D0"
