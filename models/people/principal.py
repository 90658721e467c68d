"""Signed-in people as principals: `user:user_...` in decisions and in the audit."""

from collections.abc import Iterable
from dataclasses import dataclass

from models.audit.principal import Principal
from models.people.roles import SCOPES_OF, Role


@dataclass(frozen=True)
class PersonPrincipal(Principal):
    """A person who is signed in to a workspace."""

    role: Role = "viewer"
    """The role in the workspace, read from the database at each request."""
    group_ids: frozenset[str] = frozenset()
    """The person's groups in the workspace."""
    sign_in_id: str = ""

    @property
    def person_id(self) -> str:
        """The person's id, `user_...`."""
        return self.id


def of_person(
    person_id: str,
    workspace_id: str,
    role: Role,
    group_ids: frozenset[str] = frozenset(),
    *,
    sign_in_id: str = "",
    makers: Iterable[str] = (),
) -> PersonPrincipal:
    """Return the principal of a person with this role in this workspace. A person is not their own maker."""
    others = tuple(maker for maker in makers if maker != person_id)
    return PersonPrincipal("user", person_id, workspace_id, SCOPES_OF[role], None, role, group_ids, sign_in_id, makers=others)
