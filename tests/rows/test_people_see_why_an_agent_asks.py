"""Beside an approval stand the agent's last words, the request, what the call can do, and what has changed since it was asked."""

from typing import Any

import people
import pytest
from inbox.waiting import asked
from own_database import Clock
from rows.spending import QUOTE, spent
from rows.stage import Stage, call, entry, say
from rows.voting import vote

from models.briefing.changes import changes_since
from models.briefing.reasons import Message, Reasons
from models.briefing.stakes import BUILT_IN_READERS, Stakes
from models.database.transactions import transaction
from models.session.approval.evidence import Evidence
from models.session.approval.row import Approval
from models.workspace import toolset
from workers.tools.builtin.agent_toolset import AGENT_TOOLSET


def reasons(stage: Stage, approval: Approval) -> Reasons:
    with transaction(stage.workspace_id) as db:
        return Reasons.of(db, approval)


def stakes(stage: Stage, approval: Approval, *, is_first: bool = False) -> tuple[Stakes, list[str]]:
    with transaction(stage.workspace_id) as db:
        result = Stakes.of(db, approval)
    assert result
    return result, [chip.words for chip in result.chips(is_first=is_first)]


def test_the_agent_s_words_with_the_call_and_the_request_are_told(stage: Stage) -> None:
    [approval] = asked(stage, say("The build is green."), say("So I push it."), call(), text="Release 4.2, please.")
    told = reasons(stage, approval)
    assert (told.last_words, told.request, told.since) == (
        "The build is green.\nSo I push it.",
        Message("", "Release 4.2, please."),
        None,
    )


def test_words_of_an_earlier_turn_stand_for_a_call_without_words(stage: Stage) -> None:
    session_id = stage.session(bash="always_allow", edit="always_ask")
    stage.message(session_id)
    [first] = stage.reply(session_id, say("I look first."), call(command="ls"))
    stage.run_call(first)
    stage.reply(session_id, call("edit", file_path="a", old_string="b", new_string="c"))
    assert reasons(stage, stage.approvals(session_id)[-1]).last_words == "I look first."


def test_the_person_who_asked_is_named_and_hidden_characters_are_written_out(stage: Stage) -> None:
    ben = people.member(stage, "developer", email="ben@example.com")
    session_id = stage.session(on_behalf_of=f"user:{ben.person_id}")
    stage.send(
        session_id,
        {"type": "user.message", "content": [say("Push\u202e it.")], "on_behalf_of": f"user:{ben.person_id}"},
    )
    stage.reply(session_id, call())
    assert reasons(stage, stage.approvals(session_id)[-1]).request == Message("ben", "Push<U+202E> it.")


def test_what_a_person_wrote_since_is_told(stage: Stage, clock: Clock) -> None:
    [approval] = asked(stage, text="Push it.")
    clock.advance(5)
    stage.message(approval.session_id, "Wait, not today.")
    told = reasons(stage, approval)
    assert (told.request, told.since) == (Message("", "Push it."), Message("", "Wait, not today."))


def test_the_built_in_tools_say_whether_they_write() -> None:
    assert {tool.name for tool in AGENT_TOOLSET.values() if tool.effect == "read"} == BUILT_IN_READERS


@pytest.mark.parametrize(
    ("block", "session", "chips"),
    [
        (call(command="make"), {}, ["may write", "at most once"]),
        (call("read", file_path="a"), {"read": "always_ask"}, ["reads only"]),
        (call("write", file_path="a", content="b"), {"write": "always_ask"}, ["may write"]),
        (call("look_up", n=1), {"custom": ("look_up?",)}, ["effect not declared", "at most once", "runs at the client"]),
        (call("mcp__shop__find", n=1), {"servers": {"shop": "assent:orders"}}, ["reads only"]),
        (call("mcp__shop__refund", n=1), {"servers": {"shop": "assent:orders"}}, ["may write", "at most once"]),
    ],
)
def test_what_a_call_can_do_is_told_as_its_tool_declares_it(
    stage: Stage, block: dict[str, Any], session: dict[str, Any], chips: list[str]
) -> None:
    toolset.announce({"orders": [entry("refund"), entry("find", effect="read", idempotent=True)]})
    [approval] = asked(stage, block, **session)
    assert stakes(stage, approval)[1] == chips
    assert sorted(stakes(stage, approval, is_first=True)[1]) == sorted([*chips, "first time for this agent"])


EFFECTS = {
    "git status && git diff | head -20": "reads only",
    "cd src; grep -rn delete . 2>/dev/null": "reads only",
    "git status > out.txt": "may write",
    "find . -name '*.log' -exec cat {} +": "may write",
    "curl -X POST https://shop.example": "may write",
    "cat $(make names)": "may write",
    "kill 17": "may write",
    "./git status": "may write",
    "rm -rf build": "may destroy",
    "ls && git push --force": "may destroy",
    "find . -name '*.log' -delete": "may destroy",
    'rm "$(cat names)"': "may destroy",
}
"""What commands do."""


def test_what_a_command_does_is_told_by_its_words(stage: Stage) -> None:
    approvals = asked(stage, *(call(command=command) for command in EFFECTS))
    assert {command: stakes(stage, row)[1][0] for command, row in zip(EFFECTS, approvals, strict=True)} == EFFECTS
    with transaction(stage.workspace_id) as db:
        effects = Stakes.effects_of(db, approvals)
    assert [effects[row.id].words for row in approvals] == list(EFFECTS.values())


def test_an_edited_command_counts_as_it_would_run(stage: Stage) -> None:
    approvers = [people.member(stage), people.member(stage)]
    approval = {"approvers": [f"user:{who.person_id}" for who in approvers], "required_approvals": 2}
    [row] = asked(stage, call(command="ls build"), approval=approval)
    assert stakes(stage, row)[1][0] == "reads only"
    vote(stage, approvers[0], row, updated_input={"command": "rm -r build"})
    row = stage.get(Approval, row.id)
    assert row.status == "pending"
    assert stakes(stage, row)[1][0] == "may destroy"


def test_masked_secrets_are_counted_and_a_tool_has_a_name_for_people(stage: Stage) -> None:
    toolset.announce({"orders": [entry("update_customer", title="Update a customer")]})
    [approval] = asked(stage, call("mcp__shop__update_customer", n=1), servers={"shop": "assent:orders"})
    assert stakes(stage, approval)[0].tool == "Update a customer of shop"
    [login] = asked(stage, call(command="login --password hunter2hunter2"))
    assert "1 secret masked" in stakes(stage, login)[1]


BASH = {"directory": "src", "branch": "main", "commit": "a" * 40}
UNSEEN = call(command="ls", working_directory="src")
"""A worker has to look where this command starts."""
HUNK = [{"old": 1, "new": 1, "lines": ["-a", "+b"]}]


CHANGED: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    (BASH, BASH, ""),
    (BASH, BASH | {"branch": "release"}, "the branch was main; it is release now."),
    (BASH, BASH | {"commit": "b" * 40}, "the branch main has moved to another commit."),
    (BASH, BASH | {"directory": "lib"}, "would have started in src."),
    ({"hunks": HUNK}, {"hunks": [{**HUNK[0], "old": 2}]}, "the file has changed."),
    ({"hunks": HUNK}, {"problem": "old_string does not occur"}, "the call would fail now."),
    ({"hunks": [], "is_new": True}, {"hunks": HUNK, "is_new": False}, "the file was made."),
]


def test_what_has_changed_since_it_was_asked_is_told(stage: Stage) -> None:
    approvals = asked(stage, *[UNSEEN | {"id": f"toolu_{number}"} for number in range(len(CHANGED))])
    for approval, (first, last, words) in zip(approvals, CHANGED, strict=True):
        for body in (first, first, last, last):
            with transaction(stage.workspace_id) as db:
                Evidence.keep(db, approval.id, approval.session_id, body)
        with transaction(stage.workspace_id) as db:
            changes = " ".join(changes_since(db, approval))
        assert words in changes
        assert bool(changes) == bool(words), last


def test_a_change_that_was_taken_back_is_not_told(stage: Stage) -> None:
    [approval] = asked(stage, UNSEEN)
    for body in (BASH, BASH | {"branch": "release"}, BASH):
        with transaction(stage.workspace_id) as db:
            Evidence.keep(db, approval.id, approval.session_id, body)
    with transaction(stage.workspace_id) as db:
        assert changes_since(db, approval) == []


def refund(amount: int, order: str = "o1", **more: Any) -> dict[str, Any]:
    return call("mcp__shop__refund", order=order, amount=amount, **more)


AMOUNTS: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    (refund(1250), refund(1900), "This session asked for the same with amount 1250, which is denied. It is amount 1900 here."),
    (
        refund(1250, price={"eur": 1.5}),
        refund(1250, price={"eur": 2}),
        "with price.eur 1.5, which is denied. It is price.eur 2 ",
    ),
    (refund(1250), refund(1250), ""),
    (refund(1250), refund(1900, order="o2"), ""),
    (refund(1250), refund(1900, note="more"), ""),
    (refund(1250, line_id=1), refund(1250, line_id=2), ""),
    (refund(1250, urgent=True), refund(1900, urgent=1), ""),
    (call("mcp__shop__refund", n=1), call("mcp__shop__refund", n=2), ""),
    (refund(1250, password="hunter2hunter2"), refund(1900, password="hunter2hunter2"), ""),
    (call(command="sleep 1", timeout_ms=5000), call(command="sleep 1", timeout_ms=9000), ""),
]


def test_another_amount_of_the_same_call_is_told(stage: Stage) -> None:
    schema = {"type": "object", "additionalProperties": True}
    toolset.announce({"orders": [entry("refund", input_schema=schema)]})
    for before, now, words in AMOUNTS:
        session_id = stage.session(bash="always_ask", servers={"shop": "assent:orders"})
        [first] = asked(stage, before, session_id=session_id)
        stage.decide(first, result="deny")
        stage.reply(session_id, now)
        second = stage.approvals(session_id)[-1]
        assert second.id != first.id
        with transaction(stage.workspace_id) as db:
            changes = " ".join(changes_since(db, second))
        assert words in changes
        assert bool(changes) == bool(words), now["input"]


def test_another_session_s_amount_is_not_told(stage: Stage) -> None:
    toolset.announce({"orders": [entry("refund", input_schema={"type": "object"})]})
    for amount in (1250, 1900):
        [approval] = asked(stage, refund(amount), servers={"shop": "assent:orders"})
    with transaction(stage.workspace_id) as db:
        assert changes_since(db, approval) == []


def test_a_question_about_money_says_what_the_session_has_cost_by_now_if_that_differs(stage: Stage) -> None:
    stage.quote = QUOTE
    [approval] = stage.approvals(spent(stage))
    for cost, changes in (("10", []), ("10.004", []), ("12.5", ["The session has cost $12.50 by now."])):
        with transaction(stage.workspace_id) as db:
            db.write(_COST, cost=cost, session=approval.session_id)
            assert changes_since(db, approval) == changes
            assert Stakes.of(db, approval) is None
            assert Reasons.of(db, approval).last_words == ""


_COST = "UPDATE session SET usage = jsonb_set(usage, '{cost}', to_jsonb(%(cost)s::text)) WHERE id = %(session)s"
