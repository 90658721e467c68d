"""Who is behind a request or an act; recorded with every decision."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Principal:
    """A key, a person, or Assent itself."""

    kind: str
    """`api_key`, `person`, `system`."""
    id: str
    """The key's id, a person's name, or the sweep or task that acted."""
    workspace_id: str
    scopes: frozenset[str] = frozenset()
    address: str | None = None
    """Where the request came from."""

    def __str__(self) -> str:
        return f"{self.kind}:{self.id}"


def system(actor: str, workspace_id: str) -> Principal:
    """Assent itself, acting as `actor`: a task or a sweep by name."""
    return Principal("system", actor, workspace_id)
