"""Five and more calls of one tool are decided in one table, which decides only what it showed and what is as it was."""

import html
import re
from collections.abc import Iterator
from typing import Any

import httpx2
import people
import pytest
from inbox.waiting import asked, status
from rows.stage import Stage, call, entry

from models.session.approval.row import Approval
from models.workspace import toolset

PLACE = "/inbox/together?tool=mcp__shop__refund"


@pytest.fixture
def anna(api: str, stage: Stage) -> Iterator[httpx2.Client]:
    """An approver without scripts."""
    with people.member(stage, "approver").client(api) as client:
        yield client


def refunds(stage: Stage, *calls: dict[str, Any], **session: Any) -> list[Approval]:
    """Refunds that wait: by default six, of 100 cents and more."""
    toolset.announce({"orders": [entry("refund", input_schema={"type": "object"})]})
    calls = calls or tuple({"order": 17 + n, "amount_cents": 100 + n, "currency": "EUR"} for n in range(6))
    blocks = [call("mcp__shop__refund", **arguments) for arguments in calls]
    return asked(stage, *blocks, servers={"shop": "assent:orders"}, max_turns=9, **session)


def texts_of(page: httpx2.Response) -> str:
    """The texts that a person reads on a page."""
    return " ".join(html.unescape(re.sub("<[^>]*>", " ", page.text[page.text.index("<main") :])).split())


def decide(anna: httpx2.Client, do: str, *rows: Approval, **fields: str) -> httpx2.Response:
    """Send the table's form for these calls, with the hashes that it showed."""
    marks = [f"{row.id} {row.input_sha256}" for row in rows]
    form = {"do": do, "approval": marks, "on_timeout": "deny"} | fields
    return anna.post(PLACE, data=form, follow_redirects=True)


def test_the_list_offers_a_table_from_five_calls_on(anna: httpx2.Client, stage: Stage) -> None:
    rows = refunds(stage)
    assert "Review 6 together" in anna.get("/inbox?by=tool").text
    assert re.search(
        r'href="/inbox/together\?tool=mcp__shop__refund&amp;agent=agent_\w+">Review 6 together', anna.get("/inbox").text
    )
    for row in rows[:2]:
        stage.decide(row, result="deny")
    assert "Review" not in texts_of(anna.get("/inbox?by=tool")).replace("Review it before", "")


def test_the_table_has_each_argument_once_and_allows_what_is_chosen(anna: httpx2.Client, stage: Stage) -> None:
    rows = refunds(stage)
    text = texts_of(anna.get(PLACE))
    assert "Shop refund 6 calls wait for you" in text
    assert text.count("EUR") == 1
    assert "amount_cents order" in text
    assert "6 of 6 calls, 615 amount_cents in all" in text
    page = decide(anna, "allow", *rows[:4])
    assert "2 calls wait for you" in texts_of(page)
    assert texts_of(page).count("Allowed by") == 4
    assert [status(stage, row) for row in rows] == ["allowed"] * 4 + ["pending"] * 2


def test_however_many_are_chosen_the_table_says_what_became_of_each(anna: httpx2.Client, stage: Stage) -> None:
    rows = refunds(stage, *({"order": n, "amount_cents": n} for n in range(100)))
    rows[0].input_sha256 = "0" * 64
    page = texts_of(decide(anna, "allow", *rows))
    assert "1 call changed meanwhile, and was not decided." in page
    assert page.count("Allowed by") == 99


def test_a_denial_tells_the_agent_why(anna: httpx2.Client, stage: Stage) -> None:
    rows = refunds(stage)
    decide(anna, "deny", *rows, deny_message="Not on a Friday.")
    decisions = [stage.get(Approval, row.id).decision for row in rows]
    assert decisions == [{"result": "deny", "deny_message": "Not on a Friday."}] * 6


def test_a_call_that_changed_meanwhile_is_not_decided_and_the_others_are(anna: httpx2.Client, stage: Stage) -> None:
    rows = refunds(stage)
    stage.decide(rows[0], result="deny")
    rows[1].input_sha256 = "0" * 64
    arrived = refunds(stage, {"order": 99, "amount_cents": 1_000_000, "currency": "EUR"})
    page = texts_of(decide(anna, "allow", *rows))
    assert "1 call changed meanwhile, and was not decided." in page
    assert [status(stage, row) for row in rows] == ["denied", "pending"] + ["allowed"] * 4
    assert status(stage, arrived[0]) == "pending"


ODD: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "is too long for a table": ({"order": 1, "note": "x" * 201}, {}),
    "has masked secrets": ({"order": 1, "password": "hunter22hunter22"}, {}),
    "needs several people": ({"order": 1}, {"agent_approval": {"required_approvals": 2}}),
    "needs four eyes": ({"order": 1}, {"agent_approval": {"four_eyes": True}}),
    "has a deadline with another effect": ({"order": 1}, {"agent_approval": {"on_timeout": "end_run"}}),
}


@pytest.mark.parametrize("why", ODD)
def test_a_call_that_the_table_cannot_decide_leads_to_its_card_and_is_refused(anna: httpx2.Client, stage: Stage, why: str) -> None:
    arguments, session = ODD[why]
    rows = refunds(stage)
    ben = people.member(stage, "approver", email="ben@example.com")
    if "four_eyes" in str(session):
        session = session | {"on_behalf_of": ben.person_id}
    [odd] = refunds(stage, arguments, **session)
    page = anna.get(PLACE)
    assert f"This call {why}." in texts_of(page)
    assert f'href="/inbox/approvals/{odd.id}"' in page.text
    assert f'value="{odd.id} ' not in page.text
    decide(anna, "allow", rows[0], odd)
    assert [status(stage, row) for row in (rows[0], odd)] == ["allowed", "pending"]


def test_a_person_decides_only_what_waits_for_them(anna: httpx2.Client, stage: Stage) -> None:
    finance = people.group(stage)
    theirs = refunds(stage, agent_approval={"approvers": [f"group:{finance}"]})
    assert "No such call waits for you." in texts_of(anna.get(PLACE))
    decide(anna, "allow", *theirs)
    assert {status(stage, row) for row in theirs} == {"pending"}


def test_without_a_choice_nothing_is_decided(anna: httpx2.Client, stage: Stage) -> None:
    rows = refunds(stage)
    page = decide(anna, "allow")
    assert page.status_code == 400
    assert "Choose at least one call." in page.text
    assert decide(anna, "run", *rows).status_code == 400
    assert anna.get("/inbox/together").status_code == 404
    assert {status(stage, row) for row in rows} == {"pending"}
