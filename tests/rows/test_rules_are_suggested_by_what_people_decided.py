"""Rules are suggested that would have answered what people always allowed or always denied. None contradicts a decision, and none
allows what may destroy something."""

from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest
from benchmarks.copies import copy
from own_database import DatabaseUrls
from rows.crowd import Admin, pages
from rows.stage import Stage, call, entry, rules, say

from models.database.transactions import transaction
from models.operate.insights import suggestions as module
from models.operate.insights.suggestions import Suggestion, Suggestions, suggestions
from models.session.approval.row import Approval
from models.workspace import toolset
from models.workspace.agent import Agent

Decide = Callable[..., list[Approval]]


@pytest.fixture
def admin(database_urls: DatabaseUrls) -> Iterator[Admin]:
    """A connection that fills the tables."""
    with psycopg.connect(database_urls.admin, autocommit=True) as db:
        yield db


@pytest.fixture
def decide(stage: Stage) -> Decide:
    """`decide("allow", "ls a", "ls b")`: an agent asks about these commands, or blocks, in a session, and a person decides each.

    `like`: an approval of the agent that asks. By default, it is a new one.
    """

    def verb(decision: str | dict[str, Any], *calls: Any, like: Approval | None = None, **session: Any) -> list[Approval]:
        of_session = stage.session(of_agent=like.agent_id if like else None, **session)
        stage.message(of_session)
        stage.reply(of_session, *(call(command=each) if isinstance(each, str) else each for each in calls))
        pending = [row for row in stage.approvals(of_session) if row.status == "pending"]
        for row in pending:
            stage.decide(row, **({"result": decision} if isinstance(decision, str) else decision))
        return pending

    return verb


def read(stage: Stage, agent_id: str | None = None) -> Suggestions:
    with transaction(stage.workspace_id) as db:
        return suggestions(db, agent_id)


def texts(stage: Stage) -> list[str]:
    """The suggested rules: `allow bash(ls *)`."""
    return [f"{rule.rule['effect']} {rule.rule['match']}" for rule in read(stage).rules]


def runs(count: int) -> list[str]:
    """Runs of single tests."""
    return [f"npm test -- tests/{number}.js" for number in range(count)]


def test_what_is_always_allowed_is_suggested_with_its_figures(stage: Stage, decide: Decide) -> None:
    asked = decide("allow", *runs(5), "make docs")
    [rule] = read(stage).rules
    assert rule == Suggestion(
        agent_id=stage.read(asked[0].session_id).agent_id,
        agent_name="Agent",
        rule={"effect": "allow", "match": "bash(npm test *)"},
        covers=rule.covers,
        answers=5,
        questions=6,
        newest_at=rule.newest_at,
        approval_ids=rule.approval_ids,
    )
    assert rule.covers.startswith("every bash command that starts with `npm test`, ")
    assert set(rule.approval_ids) <= {row.id for row in asked}


def test_the_narrowest_rule_that_answers_as_much_is_suggested(stage: Stage, decide: Decide) -> None:
    decide("allow", *["npm test"] * 5)
    assert texts(stage) == ["allow bash(npm test)"]


def test_few_decisions_suggest_nothing(stage: Stage, decide: Decide) -> None:
    decide("allow", *runs(4))
    decide("deny", "make docs", "make docs")
    assert texts(stage) == []


@pytest.mark.parametrize(
    "decision",
    [
        {"result": "deny"},
        {"result": "allow", "updated_input": {"command": "npm test"}},
        {"result": "allow", "respond": (say("They pass."),)},
    ],
    ids=["denied", "edited", "answered"],
)
def test_a_rule_that_contradicts_one_decision_is_not_suggested(stage: Stage, decide: Decide, decision: dict[str, Any]) -> None:
    asked = decide("allow", *runs(6))
    decide(decision, "npm test -- tests/live.js", like=asked[0])
    assert texts(stage) == []


def test_a_long_input_that_was_denied_speaks_against_every_rule_of_its_tool(stage: Stage, decide: Decide) -> None:
    asked = decide("allow", *runs(6))
    decide("deny", "echo " + "x" * 9_000, like=asked[0])
    assert texts(stage) == []


def test_an_allow_for_what_may_destroy_or_is_too_wide_is_never_suggested(stage: Stage, decide: Decide) -> None:
    for commands in (
        ["rm -r build"] * 6,
        ["git push origin main"] * 6,
        [f"kubectl delete pod web-{number}" for number in range(6)],
        [f"scripts/deploy.sh {number}" for number in range(6)],
        [f"python -m tool {number}" for number in range(6)],
        ["npm run db:migrate"] * 6,
        [f"mystery {number}x" for number in range(6)],
    ):
        decide("allow", *commands)
    assert [text for text in texts(stage) if not text.startswith("allow bash(mystery ")] == []


def test_a_tool_of_a_server_is_suggested_only_if_it_declares_that_it_reads(stage: Stage, decide: Decide) -> None:
    toolset.announce(
        {
            "shop": [
                entry("look", effect="read"),
                entry("refund"),
                entry("peek", effect="read", annotations={"destructiveHint": True}),
            ]
        }
    )
    for name in ("look", "refund", "peek"):
        decide("allow", *(call(f"mcp__shop__{name}", n=number) for number in range(5)), servers={"shop": "assent:shop"})
    decide("allow", *(call("theirs", n=number) for number in range(5)), custom=("theirs?",))
    assert texts(stage) == ["allow mcp__shop__look"]


def test_a_tool_that_certain_people_must_approve_is_not_suggested(stage: Stage, decide: Decide) -> None:
    for approval in ({"options": ["once"]}, {"widest_match": "exact"}):
        decide("allow", *runs(6), approval=approval)
    assert texts(stage) == []
    decide("allow", *runs(6))
    assert texts(stage) == ["allow bash(npm test *)"]
    stage.change_policies(approval={"four_eyes": True})
    assert texts(stage) == []


def test_edits_of_a_folder_are_suggested_by_the_folder(stage: Stage, decide: Decide) -> None:
    files = [f"src/{name}/page.py" for name in ("a", "b", "c", "d", "e")]
    decide("allow", *(call("edit", file_path=path, old_string="a", new_string="b") for path in files), edit="always_ask")
    decide("allow", *(call("write", file_path=f"/etc/{number}", content="x") for number in range(5)), write="always_ask")
    assert texts(stage) == ["allow edit(src/**)"]


def test_what_is_always_denied_is_suggested_to_be_denied(stage: Stage, decide: Decide) -> None:
    asked = decide("deny", *(f"git push origin {name}" for name in ("a", "b", "c")))
    decide("allow", "git status", like=asked[0])
    [rule] = read(stage).rules
    assert (rule.rule, rule.answers, rule.questions) == ({"effect": "deny", "match": "bash(git push origin *)"}, 3, 4)


def test_a_deny_that_contradicts_an_allow_is_not_suggested(stage: Stage, decide: Decide) -> None:
    asked = decide("deny", *["git push origin main"] * 3)
    decide("allow", "git push origin main", like=asked[0])
    assert texts(stage) == []


def test_a_rule_that_counts_now_is_suggested_no_more(stage: Stage, decide: Decide) -> None:
    session = decide("allow", *runs(5))[0].session_id
    with transaction(stage.workspace_id) as db:
        agent = Agent.find(db, stage.read(session).agent_id)
        agent.update(db, stage.principal, {"permission_policy": rules(("allow", "bash(npm test *)"))})
    assert texts(stage) == []


def test_what_a_rule_asks_about_is_no_suggestion(stage: Stage, decide: Decide) -> None:
    """An allow would answer nothing, since a rule that asks wins."""
    decide("allow", *runs(6), agent_policy=rules(("ask", "bash(npm *)")))
    assert texts(stage) == []


def test_each_agent_has_its_own_suggestions(stage: Stage, decide: Decide) -> None:
    one = decide("allow", *runs(5))[0]
    other = decide("deny", *runs(3))[0]
    first, second = (stage.read(row.session_id).agent_id for row in (one, other))
    assert [(rule.agent_id, rule.rule["effect"]) for rule in read(stage).rules] == [(first, "allow"), (second, "deny")]
    assert [rule.agent_id for rule in read(stage, second).rules] == [second]


def test_no_secret_is_suggested(stage: Stage, decide: Decide) -> None:
    decide("allow", *["npm test -- --token=hunter2hunter2hunter2"] * 5)
    assert all("hunter2" not in text for text in texts(stage))


def test_only_the_newest_are_read_in_the_same_time_however_many_there_are(
    stage: Stage, decide: Decide, admin: Admin, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "NEWEST", 20)
    session = decide("allow", *runs(5))[0].session_id
    changed = {"id": "row.id || 'x' || n", "decided_at": "row.decided_at - n * interval '1 second'"}
    copy(admin, "approval", f"session_id = '{session}'", changed, 20)
    admin.execute("VACUUM ANALYZE approval")
    few = pages(lambda: read(stage))
    copy(admin, "approval", f"session_id = '{session}' AND id NOT LIKE '%x%'", changed, 2000, 21)
    admin.execute("VACUUM ANALYZE approval")
    assert pages(lambda: read(stage)) <= 2 * few + 10
    found = read(stage)
    assert (found.looked_at, found.complete) == (20, True)
    assert found.rules[0].questions == 20


def test_what_cannot_be_tried_in_time_is_left_out(stage: Stage, decide: Decide, monkeypatch: pytest.MonkeyPatch) -> None:
    decide("allow", *runs(5))
    monkeypatch.setattr(module, "_SECONDS", -1.0)
    found = read(stage)
    assert (found.rules, found.complete) == ([], False)
