"""`assent doctor` says what is stuck, since when, why, what will happen by itself and what to do; its exit code is for monitors."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from click.testing import CliRunner, Result
from own_database import Clock, DatabaseUrls, make_url
from rows.stage import Stage, call

from api.cli.main import main
from deploy import doctor
from models.audit import seal_key
from models.audit.principal import system
from models.database import failure, metric
from models.database.transactions import transaction
from models.operate.doctor import work
from models.settings import settings
from models.settings.variables import PROCESSES
from models.workspace.halt import Halt

LATE = 2 * work.LATE_SECONDS


def examine(*options: str) -> Result:
    """Call the command."""
    return CliRunner().invoke(main, ["doctor", "--no-shell", *options])


def checks() -> dict[str, dict[str, Any]]:
    """The findings of rows, by check."""
    return {finding.check: vars(finding) for finding in work.findings()}


def queued_turn(stage: Stage) -> str:
    stage.message(session_id := stage.session())
    return stage.thread(session_id).turn_id or ""


def claimed_turn(stage: Stage) -> str:
    stage.message(session_id := stage.session())
    return stage.begin(session_id).id


def queued_call(stage: Stage) -> str:
    return stage.propose(stage.session(bash="always_allow")).id


def claimed_call(stage: Stage) -> str:
    return stage.begin_call(stage.propose(stage.session(bash="always_allow"))).id


def held_back(stage: Stage) -> str:
    """A call of a session whose files another machine has."""
    session_id = stage.session(bash="always_allow")
    stage.finish_call(stage.begin_call(stage.propose(session_id)))
    [tool_call] = stage.reply(session_id, call())
    assert stage.claim_call(tool_call, "stor_2") is None
    return tool_call.id


def asked(stage: Stage) -> str:
    return stage.approvals(stage.propose(stage.session()).session_id)[0].id


def with_client(stage: Stage) -> str:
    return stage.propose(stage.session(custom=("lookup",)), call("lookup", n=1)).id


DAY = 86_500
CASES: dict[str, tuple[Callable[[Stage], str], float, str]] = {
    "queued_turn": (queued_turn, LATE, "turns"),
    "lapsed_turn": (claimed_turn, LATE, "rescue"),
    "queued_tool_call": (queued_call, LATE, "tools"),
    "lapsed_tool_call": (claimed_call, LATE, "rescue"),
    "held_back": (held_back, LATE, "stor_1"),
    "overdue_approvals": (asked, DAY, "expire_approvals"),
    "overdue_calls": (with_client, DAY, "expire_calls"),
}


@pytest.mark.parametrize("name", CASES)
def test_work_that_nobody_does_is_named_with_its_reason(stage: Stage, clock: Clock, name: str) -> None:
    begin, seconds, reason = CASES[name]
    row_id = begin(stage)
    assert name not in checks(), "nothing is late yet"
    clock.advance(seconds)
    finding = checks()[name]
    assert finding["subjects"] == (row_id,)
    assert finding["workspaces"] == (stage.workspace_id,)
    assert finding["since"] is not None
    assert reason in finding["why"] + finding["by_itself"]
    assert finding["to_do"]


def test_a_halted_workspace_is_a_fact_and_no_fault(stage: Stage, clock: Clock) -> None:
    queued_turn(stage)
    with transaction(stage.workspace_id) as db:
        Halt.start(db, system("test", stage.workspace_id), None)
    clock.advance(LATE)
    assert {name: finding["level"] for name, finding in checks().items()} == {"halted": "info"}


def test_rows_at_which_a_task_fails_are_named_with_the_error(stage: Stage) -> None:
    failure.step_back("turn.run", "turn_1", stage.workspace_id, "KeyError")
    finding = checks()["failing"]
    assert (finding["why"], finding["subjects"]) == ("turn.run failed with KeyError", ("turn_1",))


def test_an_alarm_of_the_audit_is_told(stage: Stage) -> None:
    with transaction(stage.workspace_id) as db:
        db.write("UPDATE workspace SET seal_alarm = 'the head is gone' WHERE id = %(id)s", id=stage.workspace_id)
    assert checks()["audit_alarm"]["why"] == "the head is gone"


def test_a_broken_session_is_told_at_once(stage: Stage) -> None:
    session_id = stage.session()
    with transaction(stage.workspace_id) as db:
        db.write("UPDATE session SET status = 'running' WHERE id = %(id)s", id=session_id)
    assert checks()["broken_sessions"]["subjects"] == (session_id,)


def test_the_exit_code_is_that_of_the_worst_finding(
    stage: Stage, clean_redis: str, private_key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ASSENT_AUDIT_PUBLIC_KEYS", seal_key.read_private(private_key).public.text)
    monkeypatch.setenv("ASSENT_DATABASE_POOL_SIZE", "2")
    settings.cache_clear()
    assert examine().exit_code == 0, examine().output
    failure.step_back("turn.run", "turn_1", stage.workspace_id, "KeyError")
    assert examine().exit_code == 1
    claimed = claimed_call(stage)
    with transaction(stage.workspace_id) as db:
        db.write("UPDATE tool_call SET lease_until = assent_now() - interval '1 day' WHERE id = %(id)s", id=claimed)
    response = examine("--json")
    assert response.exit_code == 2
    body = json.loads(response.stdout)
    assert body["status"] == "critical"
    assert body["findings"][0]["check"] == "lapsed_tool_call"
    assert body["findings"][0]["subjects"] == [claimed]


def test_a_database_that_does_not_answer_is_critical(
    database_urls: DatabaseUrls, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABASE_URL", make_url(database_urls.app, "nosuch"))
    settings.cache_clear()
    response = examine("--json")
    assert response.exit_code == 2
    assert "database" in [finding["check"] for finding in json.loads(response.stdout)["findings"]]


def test_a_role_that_is_too_strong_is_critical(
    database_urls: DatabaseUrls, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABASE_URL", database_urls.owner)
    settings.cache_clear()
    response = examine()
    assert response.exit_code == 2
    assert "owns the database" in response.output


def test_redis_that_is_away_is_told_with_what_goes_on(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REDIS_URL", "redis://127.0.0.1:1/0")
    settings.cache_clear()
    response = examine()
    assert response.exit_code == 2
    assert "nothing is lost" in response.output


def test_the_pools_are_compared_with_what_postgres_allows(stage: Stage, redis_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert set(doctor.connections()) == set(PROCESSES)
    monkeypatch.setenv("ASSENT_DATABASE_POOL_SIZE", "500")
    settings.cache_clear()
    assert f"may open {sum(doctor.connections().values())} connections" in examine().output


def test_sweeps_that_do_not_run_are_named(stage: Stage, redis_url: str, clock: Clock) -> None:
    for name in ("sweep.dispatch", "tool.tidy"):
        metric.sweep_succeeded(name)
    assert "have not succeeded" not in examine().output
    clock.advance(300)
    finding = next(each for each in json.loads(examine("--json").stdout)["findings"] if each["check"] == "sweeps")
    assert finding["subjects"] == ["sweep.dispatch"], "the other one runs every ten minutes"


def test_a_moved_clock_is_critical(stage: Stage, redis_url: str, clock: Clock) -> None:
    clock.advance(100)
    response = examine()
    assert response.exit_code == 2
    assert "assent_now()" in response.output
