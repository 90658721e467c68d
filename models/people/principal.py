"""Signed-in people as principals: `user:user_...` in decisions and in the audit."""

from collections.abc import Iterable
from dataclasses import dataclass

from models.audit.principal import Principal
from models.errors import Forbidden
from models.people.roles import Role, scopes_of


@dataclass(frozen=True)
class PersonPrincipal(Principal):
    """A person who is signed in to a workspace."""

    role: Role = "viewer"
    """The role in the workspace, read from the database at each request."""
    group_ids: frozenset[str] = frozenset()
    """The person's groups in the workspace."""
    sign_in_id: str = ""
    limit: Role | None = None
    """The strongest role that the sign-in's source lets the person use. None without a limit."""

    @property
    def person_id(self) -> str:
        """The person's id, `user_...`."""
        return self.id

    def check_unlimited(self) -> None:
        """Raise Forbidden in a sign-in with a limit: a way to sign in or a channel that is added there would have none."""
        if self.limit is not None:
            raise Forbidden(
                f"Your sign-in's issuer lets you use no more than the role {self.limit}, so this cannot be added. Sign in another "
                "way: by a passkey, a password, or a one-time link."
            )


def of_person(
    person_id: str,
    workspace_id: str,
    role: Role,
    group_ids: frozenset[str] = frozenset(),
    *,
    sign_in_id: str = "",
    limit: Role | None = None,
    makers: Iterable[str] = (),
) -> PersonPrincipal:
    """Return the principal of a person with this role in this workspace. A person is not their own maker."""
    others = tuple(maker for maker in makers if maker != person_id)
    limit = None if limit == "admin" else limit
    scopes = scopes_of(role, limit)
    return PersonPrincipal("user", person_id, workspace_id, scopes, None, role, group_ids, sign_in_id, limit, makers=others)
