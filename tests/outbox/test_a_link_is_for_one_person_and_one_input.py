"""A link of a message names one approval, one person, one input and a deadline. Its row reveals neither the token nor the code."""

import hmac
from datetime import timedelta

import pytest
from own_database import Clock
from people import Somebody, member
from rows.stage import Stage
from rows.voting import ask

from models.database.transactions import transaction
from models.notices import link
from models.notices.link import Issued, Link
from models.session.approval.row import Approval
from models.settings import settings
from workers.sweeps import deleting


@pytest.fixture
def anna(stage: Stage) -> Somebody:
    return member(stage)


@pytest.fixture
def approval(stage: Stage) -> Approval:
    return ask(stage, stage.session())


def issue(stage: Stage, approval: Approval, person_id: str) -> tuple[Issued, str]:
    """The link, and the token in its URL."""
    with transaction(stage.workspace_id) as db:
        issued = link.issue(db, approval, person_id)
    return issued, issued.url.rpartition("/")[2]


def links(stage: Stage) -> list[Link]:
    with transaction(stage.workspace_id) as db:
        return db.find(Link, "ORDER BY created_at, id")


def test_a_link_names_one_approval_one_person_one_input_and_a_deadline(stage: Stage, anna: Somebody, approval: Approval) -> None:
    issued, token = issue(stage, approval, anna.person_id)
    row = link.find(token)
    assert (row.approval_id, row.person_id, row.session_id) == (approval.id, anna.person_id, approval.session_id)
    assert (row.input_sha256, row.expires_at) == (approval.input_sha256, approval.expires_at)
    assert issued.url == f"http://localhost:8000/link/{token}"
    assert len(issued.code) == 6
    assert issued.code.isdecimal()
    assert len(token) >= 43, "256 bits"


def test_the_address_begins_with_the_public_url(
    stage: Stage, anna: Somebody, approval: Approval, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ASSENT_PUBLIC_URL", "https://assent.example.com/")
    settings.cache_clear()
    issued, _ = issue(stage, approval, anna.person_id)
    assert issued.url.startswith("https://assent.example.com/link/")


def test_the_row_holds_no_token_and_only_a_keyed_hash_of_the_code(stage: Stage, anna: Somebody, approval: Approval) -> None:
    issued, token = issue(stage, approval, anna.person_id)
    [row] = links(stage)
    stored = " ".join(str(value) for value in vars(row).values())
    assert token not in stored
    assert row.code_hmac == hmac.new(token.encode(), issued.code.encode(), "sha256").hexdigest()


def test_issuing_again_keeps_the_link_that_may_have_been_sent(stage: Stage, anna: Somebody, approval: Approval) -> None:
    """A message leaves, its worker dies before it records that, and the message is sent again."""
    (first, first_token), (second, second_token) = (issue(stage, approval, anna.person_id) for _ in range(2))
    assert first.url != second.url
    assert link.find(first_token).id != link.find(second_token).id


def test_one_person_has_a_limited_number_of_links_to_an_approval(stage: Stage, anna: Somebody, approval: Approval) -> None:
    ben = member(stage)
    _, of_ben = issue(stage, approval, ben.person_id)
    with transaction(stage.workspace_id) as db:
        urls = [link.issue(db, approval, anna.person_id).url for _ in range(link.MOST_LINKS + 2)]
    tokens = [url.rpartition("/")[2] for url in urls]
    for token in tokens[:2]:
        with pytest.raises(link.UsedUp):
            link.find(token)
    assert len(links(stage)) == link.MOST_LINKS + 1
    assert [link.find(token).person_id for token in (tokens[2], tokens[-1])] == [anna.person_id] * 2
    assert link.find(of_ben).person_id == ben.person_id


def test_links_are_forgotten_a_month_after_their_deadline(stage: Stage, anna: Somebody, approval: Approval, clock: Clock) -> None:
    _, token = issue(stage, approval, anna.person_id)
    clock.advance(link.KEPT.total_seconds())
    deleting.delete_old()
    assert link.find(token).id
    clock.advance((approval.expires_at - approval.created_at + timedelta(seconds=1)).total_seconds())
    deleting.delete_old()
    assert links(stage) == []
