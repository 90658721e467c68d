"""The principal behind a request or an act. Every decision records its principal."""

import getpass
import os
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
    makers: tuple[str, ...] = field(default=(), kw_only=True)
    """Ids of the people who made the API key, or the one-time links behind the person's sign-in. Empty if nobody is known."""

    @property
    def people(self) -> tuple[str, ...]:
        """Ids of the people who may be behind the request: the signed-in person, and the makers. Empty if nobody is known."""
        own = (self.id,) if self.kind == "user" else ()
        return tuple(dict.fromkeys((*own, *self.makers)))

    def __str__(self) -> str:
        return f"{self.kind}:{self.id}"


def operating_person(workspace_id: str) -> Principal:
    """Return the principal of the person at the operator's command line: the user name, or `uid:12345` of a user without one.

    Containers often run under an id that the machine's list of users does not have.
    """
    try:
        name = getpass.getuser()
    except (KeyError, OSError):  # OSError from Python 3.13 on
        name = f"uid:{os.getuid()}"
    return Principal("person", name, workspace_id)


def system(actor: str, workspace_id: str) -> Principal:
    """Return the principal of Assent itself. `actor` names a task or a sweep."""
    return Principal("system", actor, workspace_id)
