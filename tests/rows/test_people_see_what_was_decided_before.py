"""Beside an approval stands what people decided about calls like it, of the same agent."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import psycopg
import pytest
from benchmarks.copies import copy
from own_database import Clock, DatabaseUrls
from people import group, member
from rows.crowd import Admin, pages
from rows.stage import Stage, call
from rows.voting import vote

from models.briefing import precedent as precedents
from models.briefing.precedent import Precedent
from models.database import clock as database_clock
from models.database.transactions import transaction
from models.session.approval.decider import Decider
from models.session.approval.row import Approval

Ask = Callable[..., Approval]


@pytest.fixture
def ask(stage: Stage) -> Ask:
    """`ask("ls")` or `ask("edit", ...)`: an approval that waits, of one agent, each in a session of its own."""
    agent = stage.read(stage.session()).agent_id

    def new(command: str = "", tool: str = "bash", of_agent: str | None = agent, **arguments: Any) -> Approval:
        session = stage.session(of_agent=of_agent)
        stage.propose(session, call(tool, **({"command": command} if command else {}), **arguments))
        return stage.approvals(session)[-1]

    return new


@pytest.fixture
def admin(database_urls: DatabaseUrls) -> Iterator[Admin]:
    """A connection that fills the tables."""
    with psycopg.connect(database_urls.admin, autocommit=True) as db:
        yield db


def precedent(stage: Stage, approval: Approval, decider: Decider | None = None) -> Precedent:
    with transaction(stage.workspace_id) as db:
        result = Precedent.of(db, approval, decider)
    assert result
    return result


def test_the_decisions_about_calls_like_it_are_counted(stage: Stage, ask: Ask) -> None:
    for branch in ("one", "two"):
        stage.decide(ask(f"git push origin {branch}"), result="allow")
    stage.decide(ask("ls -l"), result="deny")
    stage.decide(ask("git push && rm -r build"), result="deny")
    before = precedent(stage, ask("git push origin four"))
    assert (before.words, before.kind, before.last_denial, before.is_first) == ("allowed 2", "git push", None, False)


def test_the_last_denial_is_quoted_with_the_name_of_who_denied(stage: Stage, ask: Ask) -> None:
    ben = member(stage, email="ben@example.com")
    for words in ("Ask Anna first.", "Never on Friday."):
        vote(stage, ben, ask("git push"), "deny", deny_message=words)
    before = precedent(stage, ask("git push"))
    assert before.last_denial
    assert (before.words, before.last_denial.message, before.last_denial.by) == ("denied 2", "Never on Friday.", "ben")


def test_what_ran_with_another_input_and_what_a_person_answered_is_told_apart(stage: Stage, ask: Ask) -> None:
    stage.decide(ask("git push -f"), result="allow", updated_input={"command": "git push"})
    stage.decide(ask("git push"), result="allow", respond=[{"type": "text", "text": "Pushed."}])
    assert precedent(stage, ask("git push")).words == "allowed 1 (1 with another input), answered 1"


def test_what_no_person_decided_does_not_count(stage: Stage, ask: Ask, clock: Clock) -> None:
    """A deadline and a grant are no precedent."""
    late = ask("git push")
    clock.advance(86_400 * 2)
    stage.expire(late.session_id)
    before = precedent(stage, ask("git push"))
    assert (before.words, before.is_first) == ("", False)


def test_the_first_call_of_its_kind_is_told_from_a_later_one(stage: Stage, ask: Ask) -> None:
    first, second, other = ask("git push"), ask("git push"), ask("git log")
    assert [precedent(stage, row).is_first for row in (first, second, other)] == [True, False, True]


def test_nothing_is_said_to_be_the_first_of_an_agent_of_an_earlier_release(stage: Stage, ask: Ask, admin: Admin) -> None:
    old = ask("git push")
    admin.execute("UPDATE approval SET likeness = NULL WHERE id = %s", (old.id,))
    assert not precedent(stage, ask("git push")).is_first


def test_another_agent_s_calls_are_no_precedent(stage: Stage, ask: Ask) -> None:
    stage.decide(ask("git push", of_agent=None), result="allow")
    assert precedent(stage, ask("git push")).words == ""


def test_a_person_who_sees_only_their_own_hears_of_no_others(stage: Stage, ask: Ask) -> None:
    finance, anna = group(stage, "finance"), member(stage)
    stage.change_policies(approval={"approvers": [f"group:{finance}"]})
    ben = member(stage, groups=[finance], email="ben@example.com")
    vote(stage, ben, ask("git push"), "deny", deny_message="Not for Anna.")
    stage.change_policies(approval=None)
    waiting = ask("git push")
    with transaction(stage.workspace_id) as db:
        decider = Decider.of(db, anna.person_id, database_clock.now(db))
    assert precedent(stage, waiting).words == "denied 1"
    assert precedent(stage, waiting, decider) == replace(precedent(stage, waiting), denials=0, last_denial=None, newest=[])


def test_precedents_cost_the_same_among_many(stage: Stage, ask: Ask, admin: Admin, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(precedents, "MOST", 10)
    earlier, waiting = ask("git push"), ask("git push")
    stage.decide(earlier, result="allow")
    cost = {}
    for first, last in ((1, 100), (101, 5000)):
        _copy(admin, earlier, first, last)
        cost[last] = pages(partial(precedent, stage, waiting))
    assert precedent(stage, waiting).words == "allowed 10, of the last 10"
    assert cost[5000] <= 2 * cost[100] + 10, cost


def _copy(admin: Admin, approval: Approval, first: int, last: int) -> None:
    """Copy an approval, each copy older than the one before."""
    changed = {name: f"'{prefix}x' || n" for name, prefix in (("id", "appr_"), ("session_id", "sesn_"), ("tool_call_id", "sevt_"))}
    changed["created_at"] = "row.created_at - n * interval '1 second'"
    copy(admin, "approval", f"id = '{approval.id}'", changed, last - first + 1, first)
    admin.execute("VACUUM ANALYZE approval")
