"""Responses about people, invitations and groups: the fields of the SDK's `beta.organization`, with Assent's own."""

from datetime import datetime
from typing import Any, Literal, Self

from pydantic import Field

from api.door.responses import Empty, GroupId, Identified, IdPage, InviteId, ResponseModel, Time, UserId, WorkspaceId
from models.people import group, invitation, member, person
from models.people.roles import Role, WireRole, wire_role

Email = Field(examples=["anna@example.com"])
Source = Field(examples=["direct"])
"""`direct`, or the name of the issuer that the role or group comes from."""


class User(Identified):
    """A person with a role in the key's workspace."""

    id: UserId
    type: Literal["user"]
    email: str = Email
    name: str = Field(examples=["Anna"])
    role: WireRole
    """The role in the SDK's words: approvers and viewers are users."""
    added_at: Time
    deactivated_at: Time | None = Field(examples=[None])
    workspace_id: WorkspaceId
    workspace_role: Role
    """The role in the workspace."""
    source: str = Source
    """`direct`, or the name of the issuer that gives the role at each sign-in."""
    rbac_group_ids: list[GroupId]
    link_makers: list[UserId] = Field(examples=[[]])
    """The people who made the links behind the person's ways to sign in, as long as nobody has confirmed these ways. The person's
    vote does not count beside a vote of theirs."""

    @classmethod
    def of(cls, row: member.Member, user: person.Person, group_ids: list[str], makers: list[str]) -> Self:
        """Return a person of a workspace with the person's groups, and the makers of their links."""
        return cls.from_row(
            row,
            id=row.person_id,
            email=user.email,
            name=user.name,
            role=wire_role(row.role),
            added_at=row.created_at,
            workspace_role=row.role,
            rbac_group_ids=group_ids,
            link_makers=makers,
        )


class UserPage(IdPage[User]):
    """A page of people, the last added first."""


class UserDeleted(ResponseModel):
    """The person has no role in the workspace any more."""

    id: UserId
    type: Literal["user_deleted"]


class Invite(Identified):
    """An invitation."""

    id: InviteId
    type: Literal["invite"]
    email: str = Email
    role: WireRole
    status: Literal["pending", "accepted", "expired", "deleted"]
    rbac_group_ids: list[GroupId]
    invited_at: Time
    expires_at: Time
    accepted_at: Time | None
    workspace_role: Role
    """The role that the person gets in the workspace."""

    @classmethod
    def of(cls, row: invitation.Invitation, now: datetime, **link: Any) -> Self:
        """Return an invitation as it is at `now`."""
        return cls.from_row(
            row,
            role=wire_role(row.role),
            status=row.status(now),
            rbac_group_ids=row.group_ids,
            workspace_role=row.role,
            **link,
        )


class NewInvite(Invite):
    """A new invitation with its link."""

    url: str | None = Field(examples=["https://assent.example.com/sign-in/link/2mVqK0..."])
    """The one-time link, which is shown once. Null in the response to a repeated request."""


class InvitePage(IdPage[Invite]):
    """A page of invitations, newest first."""


class InviteDeleted(ResponseModel):
    """The invitation is withdrawn."""

    id: InviteId
    type: Literal["invite_deleted"]


class Group(ResponseModel):
    """A group of people of the workspace."""

    id: GroupId
    type: Literal["rbac_group"]
    name: str = Field(examples=["finance"])
    role_ids: Empty
    """Always empty: roles are given to people, not to groups."""
    source_type: Literal["direct", "scim"]
    """`scim`: an issuer sets the members at their sign-ins."""
    source: str = Source
    created_at: Time
    updated_at: Time

    @classmethod
    def of(cls, row: group.Group) -> Self:
        """Return a group."""
        return cls.from_row(row, source_type="direct" if row.source == member.DIRECT else "scim")


class GroupDeleted(ResponseModel):
    """The group is deleted."""

    id: GroupId
    type: Literal["rbac_group_deleted"]


class GroupMember(ResponseModel):
    """A person in a group."""

    type: Literal["rbac_group_member"]
    rbac_group_id: GroupId
    user_id: UserId
    email: str = Email
    created_at: Time

    @classmethod
    def of(cls, row: group.Membership, email: str) -> Self:
        """Return a person in a group."""
        return cls.from_row(row, rbac_group_id=row.group_id, user_id=row.person_id, email=email)


class GroupMemberDeleted(ResponseModel):
    """The person is removed from the group."""

    type: Literal["rbac_group_member_deleted"]
    rbac_group_id: GroupId
    user_id: UserId
