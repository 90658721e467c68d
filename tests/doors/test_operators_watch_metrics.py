"""`/metrics` shows an operator, in Prometheus' format, what waits and what is wrong in the workspace of the key."""

import httpx2
import pytest
from doors.served import Caller, bad, key
from own_database import Clock
from prometheus_client.parser import text_string_to_metric_families
from rows.stage import Stage, call

from models.database.transactions import transaction
from models.workspace.row import Workspace


def scraped(api: str, stage: Stage) -> dict[str, float]:
    """Scrape with an administrator's key. Returns each sample's value by name; each sample names the workspace."""
    with Caller(api, key(stage, "admin")) as operator:
        response = operator.get("/metrics")
    assert response.status_code == 200
    assert response.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    samples = [sample for family in text_string_to_metric_families(response.text) for sample in family.samples]
    assert {sample.labels["workspace"] for sample in samples} == {stage.workspace_id}
    return {sample.name: sample.value for sample in samples}


def test_what_waits_is_counted_with_its_age(api: str, stage: Stage, clock: Clock) -> None:
    assert set(scraped(api, stage).values()) == {0}
    for policy in ("always_ask", "always_allow"):
        session = stage.session(bash=policy)
        stage.message(session)
        stage.reply(session, call(), call())
    stage.message(stage.session())
    clock.advance(30)
    figures = scraped(api, stage)
    assert figures["assent_pending_approvals"] == 2
    assert figures["assent_oldest_pending_approval_seconds"] == pytest.approx(30, abs=10)
    assert figures["assent_overdue_approvals"] == 0
    assert (figures["assent_queued_calls"], figures["assent_running_calls"]) == (2, 0)
    assert figures["assent_oldest_queued_call_seconds"] == pytest.approx(30, abs=10)
    assert (figures["assent_queued_turns"], figures["assent_running_turns"]) == (1, 0)
    assert figures["assent_oldest_queued_turn_seconds"] == pytest.approx(30, abs=10)
    clock.advance(86_400)
    assert scraped(api, stage)["assent_overdue_approvals"] == 2


def test_a_call_that_no_worker_here_can_take_is_counted(api: str, stage: Stage) -> None:
    session = stage.session(bash="always_allow")
    stage.message(session)
    first, second = stage.reply(session, call(), call())
    assert stage.claim_call(first, "stor_1")
    assert stage.claim_call(second, "stor_2") is None
    figures = scraped(api, stage)
    assert (figures["assent_running_calls"], figures["assent_held_back_calls"]) == (1, 1)


@pytest.mark.parametrize("alarm", ["seal_alarm", "seal_stopped"])
def test_an_audit_that_is_not_sealed_raises_an_alarm(api: str, stage: Stage, alarm: str) -> None:
    with transaction(stage.workspace_id) as db:
        setattr(db.get_one(Workspace, stage.workspace_id), alarm, "the chain was signed before")
    assert scraped(api, stage)["assent_audit_alarm"] == 1
    assert scraped(api, Stage())["assent_audit_alarm"] == 0, "another workspace's"


def test_nobody_reads_them_without_an_administrators_key(api: str, stage: Stage) -> None:
    with Caller(api, key(stage, "read", "agents", "sessions", "approvals")) as other:
        bad(other.get("/metrics"), 403, "admin")
    assert httpx2.get(f"{api}/metrics").status_code == 401
