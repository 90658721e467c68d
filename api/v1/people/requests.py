"""Requests about people, invitations and groups: the SDK's `beta.organization`, with `workspace_role` beside `role`."""

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from api.door.examples import IDS
from api.door.requests import Body, Id, IdPaged, Name, Paged, examples
from models.people.invitation import MOST_GROUPS
from models.people.person import MAX_EMAIL
from models.people.roles import ROLES, Role, WireRole, wire_role

Email = Annotated[str, StringConstraints(min_length=3, max_length=MAX_EMAIL)]


class PeopleList(IdPaged):
    """A page of people or invitations."""

    email: Email | None = None
    roles: list[Id] = Field(default_factory=list)
    """The SDK's roles: `admin`, `developer`, `user`. Any other role matches nobody."""

    @property
    def workspace_roles(self) -> list[str] | None:
        """The roles in the workspace that `roles` stand for; None for all."""
        return [role for role in ROLES if wire_role(role) in self.roles] if self.roles else None


class UserList(PeopleList):
    """GET /v1/organizations/users."""

    include_deactivated: bool = False
    """Whether deactivated people are listed, too, but for those who were erased."""


class InviteList(PeopleList):
    """GET /v1/organizations/invites."""

    statuses: list[Literal["accepted", "expired", "pending"]] = Field(default_factory=list)
    """Default: all of these. Withdrawn invitations are not listed."""


class CursorPage(Paged):
    """A page of a list, with the limits of the SDK."""

    limit: Annotated[int, Field(ge=1, le=1000)] = 20


class UserUpdate(Body):
    """A new role of a person."""

    model_config = examples(
        {"role": "developer"},
        {"workspace_role": "viewer"},
    )

    role: WireRole | None = None
    """The role in the SDK's words. With `user`, a viewer stays a viewer, and everybody else becomes an approver."""
    workspace_role: Role | None = None
    """The role in the workspace. It outranks `role`."""


class InviteCreate(Body):
    """An invitation to the key's workspace."""

    model_config = examples(
        {"email": "anna@example.com", "role": "user"},
        {"email": "ben@example.com", "workspace_role": "admin", "rbac_group_ids": [IDS["rbac_group_id"]]},
    )

    email: Email
    role: WireRole = "user"
    """The role in the SDK's words. A `user` is an approver."""
    workspace_role: Role | None = None
    """The role in the workspace. It outranks `role`."""
    rbac_group_ids: Annotated[list[Id], Field(max_length=MOST_GROUPS)] = Field(default_factory=list)

    @property
    def given_role(self) -> Role:
        """The workspace's role that the invitation gives."""
        return self.workspace_role or ("approver" if self.role == "user" else self.role)


class GroupCreate(Body):
    """A new group."""

    model_config = examples({"name": "finance"})

    name: Name


class GroupUpdate(Body):
    """A new name of a group."""

    model_config = examples({"name": "finance and controlling"})

    name: Name | None = None


class MemberAdd(Body):
    """A person to add to a group."""

    model_config = examples({"user_id": IDS["user_id"]})

    user_id: Id
