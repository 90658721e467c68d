"""`assent limits` sets, lists and deletes spend limits; `assent approvals` decides when a session reaches one."""

import json

import pytest
from local.conftest import Assent
from rows.spending import QUOTE, begin, spent
from rows.stage import Stage


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
