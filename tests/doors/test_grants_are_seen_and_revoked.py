"""Grants in the API: the preview of a grant, the list of grants, and revoking one."""

from typing import Any

import pytest
from doors.served import Caller, bad, good, key
from doors.waiting import approval_of, asked, decide
from own_database import Clock
from rows.stage import Stage, call

from models.audit.acts import Audit
from models.database.transactions import transaction
from models.flow.judge.grants import release_waiting
from models.session.tool_call.row import ToolCall


@pytest.fixture
def waiting(caller: Caller, stage: Stage) -> list[ToolCall]:
    """Three waiting calls of one turn."""
    return asked(caller, stage, call(command="git status"), call(command="git log"), call(command="ls"))


def give(caller: Caller, tool_call: ToolCall, **body: Any) -> dict[str, Any]:
    """Allow this call with a grant. Returns the grant."""
    grant: dict[str, Any] = decide(caller, tool_call, **({"result": "allow", "scope": "session"} | body))["grant"]
    return grant


def listed(caller: Caller, **query: Any) -> list[str]:
    """Return the ids of the grants that match these filters."""
    return [grant["id"] for grant in good(caller.get("/v1/grants", params=query))["data"]]


def preview(caller: Caller, tool_call: ToolCall, **body: Any) -> dict[str, Any]:
    """Return the preview of a grant."""
    path = f"/v1/approvals/{approval_of(caller, tool_call)['id']}/preview"
    return good(caller.post(path, json={"scope": "session"} | body))


def test_the_preview_covers_what_the_grant_then_covers(caller: Caller, waiting: list[ToolCall]) -> None:
    shown = preview(caller, waiting[0], match="bash(git *)")
    assert shown["covers"].startswith("every bash command that starts with `git`")
    assert (shown["type"], shown["scope"], shown["match"], shown["waiting"]) == ("grant_preview", "session", "bash(git *)", 1)
    grant = give(caller, waiting[0], match="bash(git *)")
    assert (grant["covers"], grant["match"]) == (shown["covers"], shown["match"])
    assert grant == good(caller.get(f"/v1/grants/{grant['id']}"))
    assert grant == approval_of(caller, waiting[0])["grant"]


def test_a_preview_counts_what_waits_where_the_grant_would_reach(caller: Caller, stage: Stage, waiting: list[ToolCall]) -> None:
    agent = {"id": approval_of(caller, waiting[0])["agent_id"]}
    elsewhere = asked(caller, stage, call(command="git push"), call("read", file_path="x"), agent=agent)
    asked(caller, stage, call(command="git push"))
    assert preview(caller, waiting[0])["waiting"] == 2
    assert preview(caller, waiting[0], scope="always")["waiting"] == 3
    assert preview(caller, waiting[0], scope="always", match="exact")["waiting"] == 0
    assert preview(caller, elsewhere[1], scope="always")["waiting"] == 0


def test_a_preview_changes_nothing_and_names_invalid_fields(
    api: str, caller: Caller, stage: Stage, waiting: list[ToolCall]
) -> None:
    before = approval_of(caller, waiting[0])
    path = f"/v1/approvals/{before['id']}/preview"
    for body, field in (
        ({}, "scope: "),
        ({"scope": "once"}, "scope: "),
        ({"scope": "session", "match": "read(src/**)"}, "match: "),
        ({"scope": "session", "match": "bash(git *"}, "match: "),
    ):
        bad(caller.post(path, json=body), 400, field)
    with Caller(api, key(stage, "read")) as reader:
        bad(reader.post(path, json={"scope": "session"}), 403, "approvals")
    assert approval_of(caller, waiting[0]) == before
    assert listed(caller) == []


def test_a_grant_has_the_limits_that_it_was_given(caller: Caller, clock: Clock, waiting: list[ToolCall]) -> None:
    grant = give(caller, waiting[0], scope="always", match="exact", expires_in_seconds=60, max_uses=3)
    assert (grant["scope"], grant["session_id"], grant["max_uses"], grant["uses"]) == ("always", None, 3, 0)
    assert grant["match"] == {"tool": "bash", "input_sha256": waiting[0].input_sha256}
    assert grant["live"] is True
    clock.advance(61)
    assert good(caller.get(f"/v1/grants/{grant['id']}"))["live"] is False
    assert listed(caller, live="false") == [grant["id"]]


def test_each_filter_finds_its_own_newest_first(caller: Caller, stage: Stage, waiting: list[ToolCall]) -> None:
    [other] = asked(caller, stage, call("read", file_path="x"))
    mine, again, theirs = give(caller, waiting[0]), give(caller, waiting[1], scope="always"), give(caller, other)
    good(caller.delete(f"/v1/grants/{mine['id']}"))
    for query, grants in (
        ({}, [theirs, again, mine]),
        ({"session_id": waiting[0].session_id}, [mine]),
        ({"agent_id": mine["agent_id"]}, [again, mine]),
        ({"tool": "read"}, [theirs]),
        ({"live": "true"}, [theirs, again]),
        ({"live": "false"}, [mine]),
    ):
        assert listed(caller, **query) == [grant["id"] for grant in grants], query
    first = good(caller.get("/v1/grants", params={"limit": 2}))
    assert listed(caller, limit=2, page=first["next_page"]) == [mine["id"]]
    for query, field in (("live=perhaps", "live"), ("scope=session", "scope"), ("page=bm8", "page")):
        bad(caller.get(f"/v1/grants?{query}"), 400, field)


def test_a_revoked_grant_ends_at_once_and_revoking_again_is_a_no_op(caller: Caller, stage: Stage, waiting: list[ToolCall]) -> None:
    grant = give(caller, waiting[0], match="bash(git *)")
    assert stage.get(ToolCall, waiting[0].id).status == "queued"
    for _ in range(2):
        assert good(caller.delete(f"/v1/grants/{grant['id']}")) == {"id": grant["id"], "type": "grant_revoked"}
    revoked = good(caller.get(f"/v1/grants/{grant['id']}"))
    assert (revoked["live"], revoked["revoked_by"]) == (False, grant["given_by"])
    with transaction(stage.workspace_id) as db:
        assert len(db.find(Audit, "WHERE action = %(action)s", action="grant.revoked")) == 1

    assert release_waiting(stage.workspace_id, waiting[0].session_id) == 0
    bad(caller.delete("/v1/grants/grnt_none"), 404, "grnt_none")
    bad(caller.get("/v1/grants/grnt_none"), 404, "grnt_none")


def test_revoking_needs_the_scope_and_the_workspace(api: str, caller: Caller, stage: Stage, waiting: list[ToolCall]) -> None:
    grant = give(caller, waiting[0])
    with Caller(api, key(stage, "read")) as reader, Caller(api, key(Stage())) as stranger:
        assert good(reader.get(f"/v1/grants/{grant['id']}"))["live"] is True
        bad(reader.delete(f"/v1/grants/{grant['id']}"), 403, "approvals")
        bad(stranger.delete(f"/v1/grants/{grant['id']}"), 404)
        assert good(stranger.get("/v1/grants"))["data"] == []
    assert good(caller.get(f"/v1/grants/{grant['id']}"))["live"] is True


def test_a_call_that_a_grant_released_names_the_grant(caller: Caller, stage: Stage, waiting: list[ToolCall]) -> None:

    grant = give(caller, waiting[0], match="bash(git *)")
    assert release_waiting(stage.workspace_id, waiting[0].session_id) == 1
    approval = approval_of(caller, waiting[1])
    assert (approval["status"], approval["decided_by"]) == ("allowed", f"grant:{grant['id']}")
    assert (approval["decision"]["grant_id"], approval["grant"]) == (grant["id"], None)
    used = good(caller.get(f"/v1/grants/{grant['id']}"))
    assert (used["uses"], used["uses_per_day"]) == (1, 1)
    assert (grant["last_used_at"], grant["uses_per_day"]) == (None, 0)
    assert used["last_used_at"] >= grant["created_at"]
    assert approval_of(caller, waiting[2])["status"] == "pending"
    [given] = [e for e in caller.events(waiting[0].session_id, include="approvals") if e["type"] == "grant.given"]
    assert (given["grant_id"], given["covers"]) == (grant["id"], grant["covers"])
    assert given not in caller.events(waiting[0].session_id)


def test_a_decision_gives_several_grants_as_its_preview_says(caller: Caller, stage: Stage) -> None:
    matches = ["bash(git add *)", "bash(git commit *)"]
    line, other, beyond = asked(
        caller, stage, call(command="git add x; git commit -m y"), call(command="git add z"), call(command="git push")
    )
    shown = preview(caller, line, matches=matches)
    assert [grant["covers"].partition(",")[0] for grant in shown["grants"]] == [
        "every bash command that starts with `git add`",
        "every bash command that starts with `git commit`",
    ]
    assert (shown["covers"], shown["waiting"]) == (shown["grants"][0]["covers"], 1)
    decided = decide(caller, line, result="allow", scope="session", matches=matches)
    assert [grant["covers"] for grant in decided["grants"]] == [grant["covers"] for grant in shown["grants"]]
    assert [grant["match"] for grant in decided["grants"]] == [grant["match"] for grant in shown["grants"]]
    assert decided["grant"] == decided["grants"][0]
    assert decided["decision"]["matches"] == matches
    assert listed(caller) == [grant["id"] for grant in reversed(decided["grants"])]
    assert approval_of(caller, line)["grants"] == decided["grants"]
    for fault in ({"matches": []}, {"matches": ["x"] * 11}, {"matches": matches, "match": "exact"}, {"matches": ["bash"]}):
        path = f"/v1/approvals/{approval_of(caller, beyond)['id']}"
        bad(caller.post(f"{path}/preview", json={"scope": "session"} | fault), 400)
        bad(caller.post(f"{path}/decision", json={"result": "allow", "scope": "session"} | fault), 400)
    assert stage.get(ToolCall, other.id).status == "asked"
