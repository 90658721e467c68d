"""`/metrics` shows what waits in all workspaces. Its sums are added up after the commit, each row once, and never fall."""

from collections.abc import Callable
from dataclasses import replace
from threading import Barrier, Thread
from typing import Any

import pytest
from doors.served import key
from flask import Flask
from own_database import Clock
from people import member
from prometheus_client.parser import text_string_to_metric_families
from rows.spending import OPERATOR_PRICE
from rows.stage import Stage, call, say
from rows.tasks import claim_delivery

from models.audit.principal import Principal
from models.database import failure
from models.database.transactions import transaction
from models.flow.decide import decisions
from models.operate.metrics.adding_up import add_up
from models.outbox.delivery import Delivery
from models.outbox.endpoint import Endpoint, NewEndpoint
from models.pure.pricing.charges import Charge
from models.pure.pricing.usage import Usage
from models.session.approval.decision import Decision
from models.session.approval.row import Approval
from models.session.locked import Locked
from models.workspace.halt import Halt
from models.workspace.row import Workspace
from workers.sweeps import deleting, sealing

Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


class Scraper:
    """Scrapes as Prometheus does, with one key for all workspaces."""

    def __init__(self, app: Flask, stage: Stage) -> None:
        self.client, self.token = app.test_client(), key(stage, "metrics")

    def scrape(self) -> Samples:
        """Return the samples by name and labels."""
        response = self.client.get("/metrics", headers={"authorization": f"Bearer {self.token}"})
        assert response.status_code == 200, response.text
        families = text_string_to_metric_families(response.text)
        return {(each.name, frozenset(each.labels.items())): each.value for family in families for each in family.samples}

    def value(self, name: str, **labels: Any) -> float | None:
        """Return one sample's value; None without one."""
        return self.scrape().get((name, frozenset((label, str(value)) for label, value in labels.items())))

    def counted(self, clock: Clock, name: str, **labels: Any) -> float | None:
        """Return a sum, after the sweep that adds up what is committed now."""
        clock.advance(61)
        add_up(60)
        return self.value(name, **labels)


@pytest.fixture
def scraper(flask_app: Flask, stage: Stage, setting: Callable[[str, str], None]) -> Scraper:
    """A scraper that reads the database at each request."""
    setting("metrics_seconds", "0")
    return Scraper(flask_app, stage)


def decide(stage: Stage, approval: Approval, result: Any = "allow", by: Principal | None = None, **more: Any) -> None:
    """Decide an approval."""

    def verb(locked: Locked) -> str:
        return decisions.decide(locked, locked.db.get_one(Approval, approval.id), Decision(result, **more))

    stage.locked(approval.session_id, verb, by)


def asking(stage: Stage) -> Approval:
    """Return an approval that waits, for an hour at most."""
    session = stage.session(bash="always_ask", approval={"timeout_seconds": 3600})
    stage.propose(session)
    return stage.approvals(session)[0]


def test_what_waits_is_shown_of_each_workspace(scraper: Scraper, stage: Stage, clock: Clock) -> None:
    other = Stage()
    for one in (stage, other, other):
        asking(one)
    clock.advance(30)
    assert scraper.value("assent_approvals_pending", workspace=stage.workspace_id, kind="tool_call") == 1
    assert scraper.value("assent_approvals_pending", workspace=other.workspace_id, kind="tool_call") == 2
    assert scraper.value("assent_approval_oldest_seconds", workspace=other.workspace_id) == pytest.approx(30, abs=10)
    assert scraper.value("assent_overdue_approvals", workspace=other.workspace_id) == 0
    clock.advance(86_400)
    assert scraper.value("assent_overdue_approvals", workspace=other.workspace_id) == 2
    assert scraper.value("assent_unknown_outcomes", workspace=other.workspace_id) == 0


def test_a_deadline_does_not_pass_during_a_halt(scraper: Scraper, stage: Stage, clock: Clock) -> None:
    asking(stage)
    with transaction(stage.workspace_id) as db:
        Halt.start(db, stage.principal, None)
    clock.advance(90_000)
    assert scraper.value("assent_overdue_approvals", workspace=stage.workspace_id) == 0


def test_workspaces_beyond_the_limit_are_summed_up(
    scraper: Scraper, stage: Stage, clock: Clock, setting: Callable[[str, str], None]
) -> None:
    setting("metrics_workspaces", "1")
    for one in (stage, Stage(), Stage()):
        decide(one, asking(one))
        asking(one)
    assert scraper.value("assent_approvals_pending", workspace=stage.workspace_id, kind="tool_call") == 1
    assert scraper.value("assent_approvals_pending", workspace="others", kind="tool_call") == 2
    name, labels = "assent_approvals_total", {"outcome": "allowed", "channel": "api"}
    assert scraper.counted(clock, name, workspace=stage.workspace_id, **labels) == 1
    assert scraper.value(name, workspace="others", **labels) == 2
    workspaces = {value for _, sample in scraper.scrape() for label, value in sample if label == "workspace"}
    assert workspaces == {stage.workspace_id, "others"}


def test_an_unknown_outcome_is_counted(scraper: Scraper, stage: Stage, clock: Clock) -> None:
    session = stage.session(bash="always_allow")
    stage.lose(stage.begin_call(stage.propose(session)), clock)
    assert scraper.value("assent_unknown_outcomes", workspace=stage.workspace_id) == 1


def test_each_queue_says_what_waits_and_what_is_worked_on(scraper: Scraper, stage: Stage, clock: Clock) -> None:
    assert scraper.value("assent_queue_runnable", queue="deliver") == 0
    session = stage.session(bash="always_allow")
    stage.message(session)
    first, second = stage.reply(session, call(), call())
    stage.message(stage.session())
    clock.advance(30)
    assert scraper.value("assent_queue_runnable", queue="tools") == 2
    assert stage.claim_call(first, "stor_1")
    assert stage.claim_call(second, "stor_2") is None, "another worker has the files"
    assert scraper.value("assent_queue_leased", queue="tools") == 1
    assert scraper.value("assent_queue_runnable", queue="tools") == 0
    assert scraper.value("assent_held_back_calls", workspace=stage.workspace_id) == 1
    assert scraper.value("assent_queue_runnable", queue="turns") == 1
    assert scraper.value("assent_queue_oldest_seconds", queue="turns") == pytest.approx(30, abs=10)
    with transaction(stage.workspace_id) as db:
        Halt.start(db, stage.principal, None)
    assert scraper.value("assent_queue_runnable", queue="turns") == 0, "nothing begins in a halted workspace"


def test_decisions_are_counted_by_their_way_and_their_time(scraper: Scraper, stage: Stage, clock: Clock) -> None:
    person = member(stage, "approver").principal
    by_link = {"link_id": "link_1"}
    slow, *others, waiting = [asking(stage) for _ in range(5)]
    for approval, by, more in zip(
        others, (person, person, replace(person, through="slack:slku_1")), ({}, by_link, {}), strict=True
    ):
        decide(stage, approval, "deny", by, **more)
    clock.advance(3000)
    decide(stage, slow)
    clock.advance(600)
    stage.expire(waiting.session_id)
    ours = {"workspace": stage.workspace_id}
    assert scraper.counted(clock, "assent_approvals_total", outcome="allowed", channel="api", **ours) == 1
    for channel in ("inbox", "link", "slack"):
        assert scraper.value("assent_approvals_total", outcome="denied", channel=channel, **ours) == 1
    assert scraper.value("assent_approvals_total", outcome="expired", channel="system", **ours) == 1
    assert scraper.value("assent_decision_seconds_count", **ours) == 4, "nobody decided what has expired"
    assert scraper.value("assent_decision_seconds_sum", **ours) == pytest.approx(3000, abs=60)
    assert scraper.value("assent_decision_seconds_bucket", le="1800.0", **ours) == 3
    assert scraper.value("assent_decision_seconds_bucket", le="3600.0", **ours) == 4
    assert scraper.value("assent_decision_seconds_bucket", le="+Inf", **ours) == 4


def test_requests_to_models_are_counted_as_providers_report_them(scraper: Scraper, stage: Stage, clock: Clock) -> None:
    session = stage.session()
    usage = Usage(input_tokens=100, cache_read_input_tokens=1000, output_tokens=50)
    reported = Charge("anthropic", "claude-opus-4-5", OPERATOR_PRICE, usage)
    for charge in (reported, replace(reported, estimated=True)):
        stage.message(session)
        stage.reply(session, say("Done."), charge=charge)
    cents = 2 * 100 * float(reported.cost or 0)
    assert scraper.counted(clock, "assent_list_cost_cents_total", workspace=stage.workspace_id) == pytest.approx(cents)
    about = {"gen_ai_operation_name": "chat", "gen_ai_provider_name": "anthropic", "gen_ai_response_model": "claude-opus-4-5"}
    assert scraper.value("gen_ai_client_token_usage_sum", gen_ai_token_type="input", **about) == 1100
    assert scraper.value("gen_ai_client_token_usage_bucket", gen_ai_token_type="output", le="64.0", **about) == 1


def test_deliveries_and_failed_claims_are_counted(scraper: Scraper, stage: Stage, clock: Clock) -> None:
    assert scraper.value("assent_deliveries_total", workspace=stage.workspace_id, result="failed") == 0
    with transaction(stage.workspace_id) as db:
        endpoint = NewEndpoint(url="https://hooks.example.com/assent", enabled_events=["session.created"])
        Endpoint.create(db, stage.principal, endpoint)
    stage.session()
    with transaction(stage.workspace_id) as db:
        [row] = db.find(Delivery)
        delivery = claim_delivery(db, row.id)
        assert delivery
        delivery.finish(db, status=200, error=None, seconds=0.1)
    failure.step_back("turn.run", "turn_1", stage.workspace_id, "ValueError")
    failure.step_back("turn.run", "turn_2", stage.workspace_id, "OperationalError", counts=False)
    failure.step_back("expire_approvals", "sesn_1", stage.workspace_id, "ValueError")
    assert scraper.counted(clock, "assent_deliveries_total", workspace=stage.workspace_id, result="delivered") == 1
    failures = {labels: value for (name, labels), value in scraper.scrape().items() if name == "assent_claims_failed_total"}
    tasks = {"turn.run": 1, "tool.run": 0, "deliver.send": 0, "deliver.notify": 0}
    assert failures == {frozenset({("task", task)}): number for task, number in tasks.items()}


def test_a_row_is_added_once_and_no_sum_falls(scraper: Scraper, stage: Stage, clock: Clock) -> None:
    sums: list[float] = []
    for _ in range(3):
        decide(stage, asking(stage))
        add_up(60)
        before = scraper.value("assent_approvals_total", outcome="allowed", channel="api", workspace=stage.workspace_id)
        assert before == (sums[-1] if sums else None), "a transaction that has just committed is not looked at yet"
        clock.advance(61)
        start = Barrier(3)

        def sweep(start: Barrier = start) -> None:
            start.wait()
            add_up(60)

        several = [Thread(target=sweep) for _ in range(3)]
        for thread in several:
            thread.start()
        for thread in several:
            thread.join()
        add_up(60)
        sums.append(scraper.value("assent_approvals_total", outcome="allowed", channel="api", workspace=stage.workspace_id) or 0)
    assert sums == [1, 2, 3]


def test_an_audit_that_is_not_sealed_raises_an_alarm(scraper: Scraper, stage: Stage, clock: Clock) -> None:
    assert scraper.value("assent_audit_alarm", workspace=stage.workspace_id) == 0
    sealing.seal_audit()
    assert scraper.value("assent_audit_unsealed_seconds") == pytest.approx(0, abs=10)
    clock.advance(600)
    assert scraper.value("assent_audit_unsealed_seconds") == pytest.approx(600, abs=10)
    with transaction(stage.workspace_id) as db:
        db.get_one(Workspace, stage.workspace_id).seal_alarm = "the chain was signed before"
    assert scraper.value("assent_audit_alarm", workspace=stage.workspace_id) == 1


def test_each_sweep_says_when_it_last_succeeded(scraper: Scraper) -> None:
    assert scraper.value("assent_sweep_last_success_timestamp_seconds", sweep="sweep.delete_old") is None
    deleting.delete_old.apply()
    assert scraper.value("assent_sweep_last_success_timestamp_seconds", sweep="sweep.delete_old")


def test_a_process_reads_the_database_no_more_often_than_is_set(
    scraper: Scraper, stage: Stage, setting: Callable[[str, str], None]
) -> None:
    setting("metrics_seconds", "3600")
    before = scraper.scrape()
    asking(stage)
    assert scraper.scrape() == before
