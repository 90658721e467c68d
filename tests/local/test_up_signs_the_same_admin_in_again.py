"""The link that each start of `assent up` prints is for the admin who signs in here, once there is one."""

from urllib.parse import urlsplit

import pytest
from own_database import DatabaseUrls
from people import Visitor

from deploy import first
from models.database.transactions import transaction
from models.people.invitation import Invitation, Invitee
from models.people.member import Member
from models.people.names import Names
from models.people.person import find

ANNA, BEN = "anna@example.com", "ben@example.com"


@pytest.fixture
def workspace_id(clean_database: DatabaseUrls) -> str:
    """The workspace of `assent up`, which has nobody yet."""
    return first.workspace_id()


def path_of_link() -> str:
    """Return the path of the link that a start prints."""
    return urlsplit(first.sign_in_link()).path


def link_for(workspace_id: str, email: str) -> str:
    """Invite an admin at the database. Returns the link's path."""
    with transaction(workspace_id) as db:
        _row, secret = Invitation.create(db, Invitee(email, "admin"), by=first.system("test", workspace_id))
    return f"/sign-in/link/{secret}"


def admins(workspace_id: str) -> list[str]:
    """Return the names of the admins."""
    with transaction(workspace_id) as db:
        ids = [f"user:{row.person_id}" for row in db.find(Member, "WHERE role = 'admin' ORDER BY person_id")]
        names = Names.of(db, set(ids))
        return [names[id_] for id_ in ids]


def test_the_second_start_asks_no_name_and_ends_no_other_sign_in(api: str, workspace_id: str) -> None:
    with Visitor(api) as anna, Visitor(api) as again:
        assert anna.submit(path_of_link(), name="Anna").status_code == 303
        link = path_of_link()
        page = again.get(link).text
        assert "Sign in again" in page
        assert "Anna, admin@localhost" in page
        assert "Your name" not in page
        assert again.submit(link).status_code == 303
        assert anna.signed_in()
        assert again.signed_in()
        assert "Invitations" not in again.get("/inbox/people").text
    assert admins(workspace_id) == ["Anna"]


def test_an_admin_who_came_by_another_invitation_gets_the_link(api: str, workspace_id: str) -> None:
    with Visitor(api) as anna, Visitor(api) as again:
        assert anna.submit(link_for(workspace_id, ANNA), name="Anna").status_code == 303
        assert again.submit(path_of_link()).status_code == 303
        assert ANNA in again.get("/inbox/account").text
    assert admins(workspace_id) == ["Anna"]


def test_of_several_admins_who_are_elsewhere_nobody_gets_the_link(api: str, workspace_id: str) -> None:
    with Visitor(api) as anna, Visitor(api) as ben, Visitor(api) as again:
        anna.submit(link_for(workspace_id, ANNA), name="Anna")
        ben.submit(link_for(workspace_id, BEN), name="Ben")
        assert "admin@localhost" in again.get(path_of_link()).text
        assert again.submit(path_of_link(), name="Carla").status_code == 303
        assert "Carla, admin@localhost" in anna.get(path_of_link()).text
    assert admins(workspace_id) == ["Anna", "Ben", "Carla"]


def test_an_admin_who_has_not_signed_in_gets_an_invitation(workspace_id: str) -> None:
    with transaction(workspace_id) as db:
        by = first.system("test", workspace_id)
        Invitation.create(db, Invitee(ANNA, "admin"), by=by)
    first.sign_in_link()
    with transaction(workspace_id) as db:
        assert {row.email for row in db.find(Invitation)} == {ANNA, first.ADMIN}
        assert find(db, ANNA) is None
