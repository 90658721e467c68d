"""`assent limits` sets, lists and deletes spend limits; `assent approvals` decides when a session reaches one."""

import json

import pytest
from doors.served import Caller
from local.conftest import Assent
from rows.spending import QUOTE, begin, spent
from rows.stage import Stage

from api.cli.client import Inbox
from api.cli.states import MOST_SINGLY, names_of_agents


def test_limits_are_created_listed_and_deleted(assent: Assent, stage: Stage) -> None:
    lines = assent("limits", "create", "12.50", "--workspace", stage.workspace_id, "--period", "weekly")
    header, row = lines.splitlines()
    assert header.split() == ["ID", "LIMITS", "PERIOD", "AMOUNT"]
    limit_id, *fields = row.split()
    assert fields == ["workspace", stage.workspace_id, "weekly", "$12.50"]
    assert assent("limits", "list") == lines
    assert assent("limits", "delete", limit_id) == f"{limit_id} is deleted.\n"
    assert assent("limits", "list") == "None.\n"
    assert "name one of --agent" in assent("limits", "create", "5", code=2)
    assert "DOLLARS" in assent("limits", "create", "0.001", "--workspace", stage.workspace_id, code=2)


def test_usage_is_a_table_with_the_names_of_agents(assent: Assent, stage: Stage) -> None:
    stage.quote = QUOTE
    agent = stage.read(spent(stage)).agent_id
    header, row = assent("usage", "--by", "agent", "--daily").splitlines()
    assert header.split("  ")[0] == "DAY"
    assert header.split()[1:4] == ["AGENT", "COST", "REQUESTS"]
    assert "$" in row
    assert agent not in row
    assert json.loads(assent("usage", "--by", "agent", "--json"))[0]["agent_id"] == agent


def test_only_the_agents_that_a_table_names_are_read(caller: Caller) -> None:
    agents = [caller.agent(name=f"Agent {number}")["id"] for number in range(3)]
    paths: list[str] = []
    caller.event_hooks["request"].append(lambda request: paths.append(request.url.path))
    assert names_of_agents(Inbox(caller), [agents[1], None, agents[1]]) == {agents[1]: "Agent 1"}
    assert paths == [f"/v1/agents/{agents[1]}"]
    assert len(names_of_agents(Inbox(caller), [*agents, *(f"agent_{number}" for number in range(MOST_SINGLY))])) == 3
    assert paths[1:] == ["/v1/agents"]


@pytest.mark.parametrize("cap", ["budget", "limit"])
def test_a_cap_is_raised(assent: Assent, stage: Stage, cap: str) -> None:
    stage.quote = QUOTE
    if cap == "budget":
        session = spent(stage)
    else:
        assent("limits", "create", "0.50", "--workspace", stage.workspace_id)
        session = begin(stage)
        assert stage.claim(session) is None
    [approval] = stage.approvals(session)
    assent("approvals", "decide", approval.id, "--allow")
    row = stage.read(session)
    assert row.status == "running"
    assert (row.max_list_cost, row.spend_limits_from) == ((20, None) if cap == "budget" else (None, 11))
