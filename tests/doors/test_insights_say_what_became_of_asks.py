"""`GET /v1/insights` sums up what became of asks, and how long people took, by day, hour, tool, agent, channel and person."""

import csv
import io
from typing import Any

import pytest
from doors.served import Caller, bad, good, key
from people import Somebody, member
from rows.stage import Stage, call

from models.flow.decide import decisions
from models.operate.metrics.adding_up import add_up
from models.session.approval.decision import Decision
from models.session.approval.row import Approval
from models.session.locked import Locked

GROUPS = ("day", "hour", "tool", "agent", "channel", "person")


def decide(stage: Stage, approval: Approval, result: Any, by: Somebody) -> None:
    """Have a person decide an approval."""

    def verb(locked: Locked) -> str:
        return decisions.decide(locked, locked.db.get_one(Approval, approval.id), Decision(result))

    stage.locked(approval.session_id, verb, by.principal)


@pytest.fixture
def anna(stage: Stage) -> Somebody:
    """Who decides."""
    return member(stage, "approver")


@pytest.fixture
def closed(stage: Stage, anna: Somebody, clock: Any) -> list[Approval]:
    """Five asks of one session: Anna allows two at once and one after ten minutes, denies one, and has an hour for the last."""
    session = stage.session(bash="always_ask", write="always_ask", approval={"timeout_seconds": 3600})
    stage.message(session)
    stage.reply(session, *(call(command=f"rm {name}") for name in "abcd"), call("write", file_path="x", content="x"))
    asks = stage.approvals(session)
    for ask in asks[:2]:
        decide(stage, ask, "allow", anna)
    clock.advance(600)
    decide(stage, asks[2], "deny", anna)
    decide(stage, asks[4], "allow", anna)
    clock.advance(61)
    add_up(60)
    return asks


def report(caller: Caller, group: str, **query: Any) -> dict[str, dict[str, Any]]:
    """Return the lines with asks of a report, by name."""
    lines = good(caller.get("/v1/insights", params={"group_by": group} | query))["data"]
    return {line["name"]: line for line in lines if line["asks"]}


def test_each_group_has_every_decision(caller: Caller, closed: list[Approval], subtests: pytest.Subtests) -> None:
    for group in GROUPS:
        with subtests.test(group):
            lines = report(caller, group).values()
            sums = [sum(line[name] for line in lines) for name in ("allows", "denials", "decisions", "quick_allows")]
            assert sums == [3, 1, 4, 2]
            assert sum(line["waiting"] for line in lines) == (0 if group in {"channel", "person"} else 1)


def test_a_line_tells_shares_and_times(caller: Caller, closed: list[Approval], anna: Somebody) -> None:
    tools = report(caller, "tool")
    assert {name: line["asks"] for name, line in tools.items()} == {"bash": 4, "write": 1}
    assert tools["bash"]["allow_rate"] == pytest.approx(2 / 3, abs=0.001)
    assert tools["bash"]["median_seconds"] <= 3
    assert 420 <= tools["write"]["median_seconds"] <= 900
    [person] = report(caller, "person").values()
    assert (person["name"], person["allow_rate"]) == (anna.person_id, 0.75)
    assert 420 <= person["p90_seconds"] <= 900


def test_a_line_has_a_title_for_people(caller: Caller, closed: list[Approval], anna: Somebody, stage: Stage) -> None:
    [person] = report(caller, "person").values()
    assert person["title"] == anna.email.partition("@")[0]
    [agent] = report(caller, "agent").values()
    assert agent["title"] != agent["name"]
    [channel] = report(caller, "channel").values()
    assert (channel["name"], channel["title"]) == ("inbox", "Inbox")


def test_each_group_can_be_of_one_agent(
    caller: Caller, closed: list[Approval], clock: Any, stage: Stage, subtests: pytest.Subtests
) -> None:
    other = stage.session(bash="always_ask")
    stage.propose(other, call(command="ls"))
    stage.decide(stage.approvals(other)[0], result="deny")
    clock.advance(61)
    add_up(60)
    ours, theirs = closed[0].agent_id, stage.read(other).agent_id
    for group in GROUPS:
        with subtests.test(group):
            one = report(caller, group, agent_id=ours)
            reports = [list(lines.values()) for lines in (report(caller, group), one, report(caller, group, agent_id=theirs))]
            sums = [[sum(line[name] for line in lines) for name in ("allows", "denials", "waiting")] for lines in reports]
            waiting = 0 if group in {"channel", "person"} else 1
            denials = 0 if group == "person" else 1  # an API key is no person
            assert sums == [[3, 1 + denials, waiting], [3, 1, waiting], [0, denials, 0]]
            rows = caller.get("/v1/insights/csv", params={"group_by": group, "agent_id": ours}).text
            assert {row["name"] for row in csv.DictReader(io.StringIO(rows)) if row["asks"] != "0"} == set(one)


def test_an_unknown_agent_is_refused(caller: Caller) -> None:
    assert "agent_id" in bad(caller.get("/v1/insights", params={"agent_id": "agent_none"}), 400)["message"]


def test_what_a_deadline_decides_is_nobody_s_time(caller: Caller, closed: list[Approval], clock: Any, stage: Stage) -> None:
    clock.advance(3600)
    stage.expire(closed[3].session_id)
    clock.advance(61)
    add_up(60)
    line = report(caller, "tool")["bash"]
    assert (line["expiries"], line["decisions"], line["waiting"]) == (1, 3, 0)


def test_the_days_are_those_of_the_questions(caller: Caller, closed: list[Approval], clock: Any) -> None:
    [day] = report(caller, "day")
    clock.advance(40 * 86_400)
    assert report(caller, "day") == {}
    assert list(report(caller, "day", starting_at=f"{day}T12:00:00Z")) == [day]
    everything = good(caller.get("/v1/insights", params={"starting_at": f"{day}T00:00:00Z", "ending_at": f"{day}T01:00:00Z"}))
    assert (everything["first_day"], everything["last_day"], len(everything["data"])) == (day, day, 1)


def test_sums_stay_when_the_session_is_deleted(caller: Caller, closed: list[Approval], stage: Stage) -> None:
    session = closed[0].session_id
    good(caller.post(f"/v1/sessions/{session}/events", json={"events": [{"type": "user.interrupt"}]}))
    good(caller.delete(f"/v1/sessions/{session}"))
    assert report(caller, "tool")["bash"]["denials"] == 1


def test_a_spreadsheet_gets_the_same_lines_and_no_formula(caller: Caller, closed: list[Approval], stage: Stage) -> None:
    response = caller.get("/v1/insights/csv", params={"group_by": "tool"})
    assert response.headers["content-type"].startswith("text/csv")
    rows = list(csv.DictReader(io.StringIO(response.text)))
    lines = report(caller, "tool")
    assert [(row["name"], int(row["allows"]), float(row["median_seconds"])) for row in rows] == [
        (line["name"], line["allows"], line["median_seconds"]) for line in lines.values()
    ]


def test_only_readers_see_them_and_a_wrong_span_is_refused(caller: Caller, stage: Stage) -> None:
    with Caller(str(caller.base_url), key(stage, "approvals")) as decider:
        bad(decider.get("/v1/insights"), 403)
    for query in ({"starting_at": "2100-01-01T00:00:00Z"}, {"starting_at": "2020-01-01T00:00:00Z"}, {"group_by": "input"}):
        for path in ("/v1/insights", "/v1/insights/csv"):
            bad(caller.get(path, params=query), 400)


def test_another_workspace_s_asks_are_not_in_them(caller: Caller, closed: list[Approval]) -> None:
    with Caller(str(caller.base_url), key(Stage())) as other:
        assert all(report(other, group) == {} for group in GROUPS)
