"""Ids: a prefix that names the kind, then a ULID: sorts by time, 80 random bits, safe in a URL."""

from ulid import ULID


def new(prefix: str) -> str:
    """A new id such as `sesn_01JD...`: the prefix, an underscore and 26 characters."""
    return f"{prefix}_{ULID()}"
