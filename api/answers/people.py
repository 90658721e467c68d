"""People, invitations and groups as the SDK's `beta.organization` knows them, with what we add."""

from typing import Literal

from pydantic import Field

from api.answers.base import Answer, Empty, GroupId, InviteId, Time, UserId, WorkspaceId

Email = Field(examples=["anna@example.com"])
Source = Field(examples=["direct"])
"""`direct`, or the name of the issuer that gives it."""


class User(Answer):
    """A person with a role in the key's workspace."""

    id: UserId
    type: Literal["user"]
    email: str = Email
    name: str = Field(examples=["Anna"])
    role: Literal["admin", "developer", "user"]
    """The role in the SDK's words: approvers and viewers are users."""
    added_at: Time
    workspace_id: WorkspaceId
    workspace_role: Literal["admin", "developer", "approver", "viewer"]
    """The role in the workspace."""
    source: str = Source
    """`direct`, or the name of the issuer that gives the role at each sign-in."""
    rbac_group_ids: list[GroupId]


class UserPage(Answer):
    """A page of people, the last added first."""

    data: list[User]
    first_id: str | None
    last_id: str | None
    has_more: bool


class UserDeleted(Answer):
    """A person who has no role in the workspace any more."""

    id: UserId
    type: Literal["user_deleted"]


class Invite(Answer):
    """An invitation."""

    id: InviteId
    type: Literal["invite"]
    email: str = Email
    role: Literal["admin", "developer", "user"]
    status: Literal["pending", "accepted", "expired", "deleted"]
    rbac_group_ids: list[GroupId]
    invited_at: Time
    expires_at: Time
    accepted_at: Time | None
    workspace_role: Literal["admin", "developer", "approver", "viewer"]
    """The role that the person gets in the workspace."""


class NewInvite(Invite):
    """A new invitation with its link."""

    url: str | None = Field(examples=["https://assent.example.com/sign-in/link/2mVqK0..."])
    """The one-time link, which is shown once. Null in the response to a repeated request."""


class InvitePage(Answer):
    """A page of invitations, newest first."""

    data: list[Invite]
    first_id: str | None
    last_id: str | None
    has_more: bool


class InviteDeleted(Answer):
    """An invitation that was withdrawn."""

    id: InviteId
    type: Literal["invite_deleted"]


class Group(Answer):
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


class GroupDeleted(Answer):
    """A group that is gone."""

    id: GroupId
    type: Literal["rbac_group_deleted"]


class GroupMember(Answer):
    """A person in a group."""

    type: Literal["rbac_group_member"]
    rbac_group_id: GroupId
    user_id: UserId
    email: str = Email
    created_at: Time


class GroupMemberDeleted(Answer):
    """A person who was taken out of a group."""

    type: Literal["rbac_group_member_deleted"]
    rbac_group_id: GroupId
    user_id: UserId
