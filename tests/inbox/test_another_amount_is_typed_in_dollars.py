"""Another amount for a session that may spend no more is typed in dollars, exactly, and decided in the cents of the API."""

import html
from collections.abc import Iterator

import httpx2
import people
import pytest
from rows.spending import QUOTE, begin, limit, spent
from rows.stage import Stage

from models.session.approval.row import Approval

WRONG = {
    **dict.fromkeys(("12,50", "12.505", "1e3", "٣", "-1", "$", "1 000", " "), "Write US dollars with at most two decimals"),
    "0.00": "Write more than $0, and at most $9,999,999,999.99.",
    "10000000000": "Write more than $0, and at most $9,999,999,999.99.",
    "$10": "This is the amount that was asked for.",
}


@pytest.fixture
def anna(api: str, stage: Stage) -> Iterator[httpx2.Client]:
    """An admin without scripts."""
    with people.member(stage, "admin").client(api) as client:
        yield client


@pytest.fixture
def approval(stage: Stage) -> Approval:
    """The question whether to raise the budget of a session by $10."""
    stage.quote = QUOTE
    [approval] = stage.approvals(spent(stage))
    return approval


def send(anna: httpx2.Client, approval: Approval, typed: str) -> httpx2.Response:
    """Send the form with this amount."""
    return anna.post(f"/inbox/approvals/{approval.id}/edit", data={"sha256": approval.input_sha256, "amount": typed})


def test_an_amount_that_cannot_be_read_keeps_its_fault_beside_it(anna: httpx2.Client, approval: Approval, stage: Stage) -> None:
    for typed, fault in WRONG.items():
        response = send(anna, approval, typed)
        text = html.unescape(response.text)
        assert f'<span class="fault" id="fault-amount" role="alert">{fault}' in text, typed
        assert f'value="{typed}" aria-invalid="true"' in text
    assert stage.get(Approval, approval.id).status == "pending"


@pytest.mark.parametrize(("typed", "cents"), [("12.50", "1250"), ("$12.5", "1250"), (" 7 ", "700"), ("0.29", "29")])
def test_the_decision_has_cents(anna: httpx2.Client, approval: Approval, stage: Stage, typed: str, cents: str) -> None:
    form = anna.get(f"/inbox/approvals/{approval.id}/edit").text
    assert 'value="10.00"' in form
    assert "Raise the budget by" in form
    assert send(anna, approval, typed).status_code == 303
    response = anna.get(f"/v1/approvals/{approval.id}").json()
    assert response["decided_input"] == {"amount": cents, "currency": "USD"}
    assert stage.read(approval.session_id).budget["max_list_cost"]["amount"] == str(1000 + int(cents))  # type: ignore[index]
    card = anna.get(f"/inbox/approvals/{approval.id}").text
    assert "$10.00" in card
    assert f"${int(cents) / 100:.2f}" in card


def test_what_a_session_may_spend_beyond_a_limit_is_typed_in_dollars_too(anna: httpx2.Client, stage: Stage) -> None:
    stage.quote = QUOTE
    limit(stage, "0.5")
    session_id = begin(stage)
    assert stage.claim(session_id) is None
    [approval] = stage.approvals(session_id)
    assert "Let it spend more, up to" in anna.get(f"/inbox/approvals/{approval.id}/edit").text
    assert send(anna, approval, "2.50").status_code == 303
    assert str(stage.read(session_id).spend_limits_from) == "2.5"
