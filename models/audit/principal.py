"""The principal behind a request or an act. Every decision records its principal."""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Principal:
    """An API key, a person, or a part of Assent itself."""

    kind: str
    """`api_key`, `user`, `grant`, `link`, `system`, or `person` for somebody at the operator's command line."""
    id: str
    """The id of the key, person, grant or link; the name of the task or sweep; or the operator's user name."""
    workspace_id: str
    scopes: frozenset[str] = frozenset()
    address: str | None = None
    """The client's IP address."""
    through: str = field(default="", kw_only=True)
    """The service through which a person acts without a sign-in, `slack:slku_...`. Each act of the audit names it."""

    def __str__(self) -> str:
        return f"{self.kind}:{self.id}"


def system(actor: str, workspace_id: str) -> Principal:
    """Return the principal of Assent itself. `actor` names a task or a sweep."""
    return Principal("system", actor, workspace_id)
