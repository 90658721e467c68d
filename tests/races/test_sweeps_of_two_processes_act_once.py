"""Two processes sweep at the same moment: each due row is acted on once, each fact is counted once, and each act is sealed once."""

from collections import Counter
from pathlib import Path

import pytest
from audit.tampering import verified
from crashes.invariants import check_invariants
from own_database import Clock, DatabaseUrls
from races.races_together import together
from rows.stage import Stage, call
from walls.world import rows

from models.audit import seals, signed_heads
from models.audit.acts import Audit
from models.audit.seal_sweep import SealSweep
from models.database.transactions import transaction
from models.settings import settings
from workers.celery import app
from workers.schedule import BEAT

ELSEWHERE = {"sweep.dispatch", "sweep.seal_audit", "sweep.check_sessions", "sweep.report", "tool.tidy"}
"""Hints, seals (the last test), two that only read, and one that deletes files of sessions that are gone."""
SWEEPS = sorted({entry["task"] for entry in BEAT.values()} - ELSEWHERE)
COUNT = 5
"""Due rows of each kind."""


def sweep_as_two() -> Counter[str]:
    """Run every sweep for two processes at the same moment, three times. Return how much each did, by its own words."""
    app.loader.import_default_modules()  # registers the tasks
    done: Counter[str] = Counter()
    for _ in range(3):  # a session that another sweep has locked is left to the next one
        tasks = [app.tasks[name] for name in SWEEPS for _ in range(2)]
        for task, words in zip(tasks, together(*tasks), strict=True):
            assert isinstance(words, str), words
            done[task.name] += int(words.rpartition(" ")[2]) if words else 0
    return done


def test_each_due_row_is_acted_on_once_and_counted_once(stage: Stage, clock: Clock, database_urls: DatabaseUrls) -> None:
    asked = [stage.session(bash="always_ask", approval={"timeout_seconds": 60}) for _ in range(COUNT)]
    reminded = [
        stage.session(bash="always_ask", approval={"timeout_seconds": 600, "remind_after_seconds": 60}) for _ in range(COUNT)
    ]
    lost_turns = [stage.session() for _ in range(COUNT)]
    lost_calls = [stage.session(bash="always_allow") for _ in range(COUNT)]
    unanswered = [stage.session(custom=("lookup",)) for _ in range(COUNT)]
    for session_id in (*asked, *reminded):
        stage.propose(session_id)
    for session_id in lost_turns:
        stage.message(session_id)
        stage.begin(session_id)
    for session_id in lost_calls:
        stage.begin_call(stage.propose(session_id))
    for session_id in unanswered:
        stage.change_agent(session_id, lambda agent: agent["tools"][-1].update(result_timeout_seconds=60))
        stage.propose(session_id, call("lookup", n=1))
    clock.advance(120)
    done = sweep_as_two()
    once = {
        "sweep.expire_approvals": COUNT,
        "sweep.expire_calls": COUNT,
        "sweep.remind_approvers": COUNT,
        "sweep.rescue": 2 * COUNT,
    }
    assert +done == once
    for session_id in (*asked, *reminded, *lost_turns, *lost_calls, *unanswered):
        check_invariants(stage.workspace_id, session_id)
    assert [len(stage.events(session_id, "agent.tool_result")) for session_id in asked] == [1] * COUNT
    assert [a.kind for session_id in lost_calls for a in stage.approvals(session_id)] == ["unknown_outcome"] * COUNT
    clock.advance(120)
    assert not +sweep_as_two()
    expired = "SELECT value FROM metric WHERE name = 'assent_approvals_total' AND labels ->> 'outcome' = 'expired'"
    assert rows(database_urls.admin, expired) == [(COUNT,)]


def test_each_act_is_sealed_once_by_two_processes_that_share_the_file_of_heads(
    stage: Stage, private_key: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    heads = tmp_path / "audit.heads"
    signed_heads.make(heads)
    monkeypatch.setenv("ASSENT_AUDIT_KEY", private_key)
    monkeypatch.setenv("ASSENT_AUDIT_HEADS_FILE", str(heads))
    settings.cache_clear()
    processes = [SealSweep(), SealSweep()]
    sessions = [stage.session() for _ in range(COUNT)]
    for session_id in sessions:
        stage.message(session_id)
        together(*(process.run for process in processes))
    for process in processes:
        process.run()
    with transaction(stage.workspace_id) as db:
        acts = db.find(Audit, "WHERE action = %(action)s ORDER BY seq", action=seals.SEALED)
    heads_of = Counter((chain, tuple(head)) for act in acts for chain, head in act.details["heads"].items())
    assert {chain for chain, _ in heads_of} == {*sessions}
    assert {*heads_of.values()} == {1}
    report = verified(stage)
    assert (report.intact, report.unsealed, report.problems) == (True, 0, [])
