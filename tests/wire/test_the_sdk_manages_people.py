"""The SDK's `beta.organization` manages users, invites, groups and their members. Each list is read to its end."""

import anthropic
import pytest
from anthropic import Anthropic
from people import Somebody, group, member
from rows.stage import Stage


@pytest.fixture
def anna(stage: Stage) -> Somebody:
    """An approver."""
    return member(stage, "approver", email="anna@example.com")


def test_people_are_listed_found_and_counted_page_by_page(sdk: Anthropic, stage: Stage, anna: Somebody) -> None:
    others = [member(stage, "viewer") for _ in range(4)]
    members = sdk.beta.organization.users
    listed = [user.id for user in members.list(limit=2)]
    assert listed == [somebody.person_id for somebody in reversed([anna, *others])]
    [found] = members.list(email="ANNA@Example.com ")
    assert (found.id, found.email, found.role) == (anna.person_id, "anna@example.com", "user")
    assert members.retrieve(anna.person_id) == found
    before = members.list(before_id=listed[-1], limit=2)
    assert [user.id for user in before.data] == listed[2:4]
    assert [user.id for user in members.list(roles=["admin", "developer"])] == []


def test_a_role_is_changed_by_the_sdk_s_name_and_by_ours(sdk: Anthropic, anna: Somebody) -> None:
    members = sdk.beta.organization.users
    assert members.update(anna.person_id, role="developer").role == "developer"
    viewer = members.update(anna.person_id, role="user", extra_body={"workspace_role": "viewer"})
    assert (viewer.role, viewer.workspace_role) == ("user", "viewer")  # type: ignore[attr-defined]
    assert members.update(anna.person_id, role="user").workspace_role == "viewer"  # type: ignore[attr-defined]
    with pytest.raises(anthropic.BadRequestError, match="role"):
        members.update(anna.person_id, role="billing")


def test_a_removed_person_is_gone_and_signed_out(sdk: Anthropic, api: str, anna: Somebody) -> None:
    with anna.client(api) as client:
        assert client.get("/v1/sessions").status_code == 403
        assert sdk.beta.organization.users.remove(anna.person_id).type == "user_deleted"
        assert client.get("/v1/sessions").status_code == 401
    with pytest.raises(anthropic.NotFoundError):
        sdk.beta.organization.users.retrieve(anna.person_id)
    assert list(sdk.beta.organization.users.list()) == []


def test_signing_a_person_out_leaves_the_role(sdk: Anthropic, api: str, anna: Somebody) -> None:
    assert sdk.beta.organization.users.sign_out(anna.person_id).id == anna.person_id
    with anna.client(api) as client:
        assert client.get("/v1/sessions").status_code == 401
    assert sdk.beta.organization.users.retrieve(anna.person_id).role == "user"


def test_invitations_are_made_listed_and_withdrawn(sdk: Anthropic, stage: Stage, anna: Somebody) -> None:
    invites = sdk.beta.organization.invites
    finance = group(stage)
    made = invites.create(email=" Ben@Example.com", role="user", rbac_group_ids=[finance])
    assert (made.email, made.status, made.rbac_group_ids) == ("ben@example.com", "pending", [finance])
    assert made.workspace_role == "approver"  # type: ignore[attr-defined]
    assert "/sign-in/link/" in made.url  # type: ignore[attr-defined]
    again = invites.create(email="ben@example.com", role="developer")
    assert [invite.id for invite in invites.list()] == [again.id], "the earlier link has ended"
    assert not hasattr(invites.retrieve(again.id), "url")
    assert [invite.id for invite in invites.list(statuses=["pending"], email="ben@example.com", roles=["developer"])] == [again.id]
    assert list(invites.list(statuses=["accepted", "expired"])) == []
    assert invites.delete(again.id).type == "invite_deleted"
    assert list(invites.list()) == []
    with pytest.raises(anthropic.BadRequestError, match="member"):
        invites.create(email=anna.email, role="user")
    with pytest.raises(anthropic.BadRequestError, match="e-mail"):
        invites.create(email="no address", role="user")


def test_groups_and_their_members_are_managed(sdk: Anthropic, stage: Stage, anna: Somebody) -> None:
    groups = sdk.beta.organization.rbac_groups
    made = [groups.create(name=name) for name in ("finance", "finance", "legal")]
    assert [row.id for row in groups.list(limit=1)] == [row.id for row in reversed(made)]
    first = made[0]
    assert (first.source_type, first.role_ids) == ("direct", [])
    assert groups.update(first.id, name="controlling").name == "controlling"
    people = [anna, member(stage, "viewer"), member(stage, "viewer")]
    for somebody in people:
        added = groups.members.add(first.id, user_id=somebody.person_id)
        assert (added.user_id, added.email) == (somebody.person_id, somebody.email)
    assert groups.members.add(first.id, user_id=anna.person_id).user_id == anna.person_id
    assert [row.user_id for row in groups.members.list(first.id, limit=1)] == [p.person_id for p in reversed(people)]
    removed = groups.members.remove(anna.person_id, rbac_group_id=first.id)
    assert (removed.type, removed.user_id) == ("rbac_group_member_deleted", anna.person_id)
    with pytest.raises(anthropic.NotFoundError):
        groups.members.remove(anna.person_id, rbac_group_id=first.id)
    with pytest.raises(anthropic.NotFoundError):
        groups.members.add(first.id, user_id="user_unknown")
    assert groups.delete(first.id).type == "rbac_group_deleted"
    with pytest.raises(anthropic.NotFoundError):
        groups.retrieve(first.id)
