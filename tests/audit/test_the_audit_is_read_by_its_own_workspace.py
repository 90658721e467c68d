"""`/v1/audit` lists, verifies and exports the acts of the key's own workspace, with the scope `admin`."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from audit.tampering import Intruder, act, sealed
from doors.served import Caller, bad, good, key
from rows.stage import Stage

from api.v1.audit import routes as audit
from models.audit import seal_key, verifying
from models.audit.seal_key import PublicKey

pytestmark = pytest.mark.usefixtures("key")


@pytest.fixture
def caller(api: str, stage: Stage) -> Iterator[Caller]:
    """A client of the workspace with all scopes."""
    with Caller(api, key(stage)) as client:
        yield client


def listed(caller: Caller, **query: Any) -> list[dict[str, Any]]:
    """All pages of a list."""
    acts: list[dict[str, Any]] = []
    page: dict[str, Any] = {}
    while True:
        answer = good(caller.get("/v1/audit", params=query | page))
        acts += answer["data"]
        if not answer["next_page"]:
            return acts
        page = {"page": answer["next_page"]}


def test_acts_are_listed_newest_first_over_any_time(caller: Caller, stage: Stage, intruder: Intruder) -> None:
    """Pages are read in growing spans of time, and no act is skipped."""
    session_id = act(stage)
    for seq, ago in enumerate(("1 minute", "3 hours", "3 hours", "2 days", "3 years", "3 years"), 1):
        intruder.do(f"UPDATE audit SET at = at - interval '{ago}' WHERE chain = %s AND seq = %s", session_id, seq)
    everything = intruder.db.execute("SELECT chain, seq FROM audit ORDER BY at DESC, chain DESC, seq DESC").fetchall()
    for limit in (1, 2, 100):
        assert [(row["chain"], row["seq"]) for row in listed(caller, limit=limit)] == everything
    of_session = [row["seq"] for row in listed(caller, limit=2, session_id=session_id)]
    assert of_session == [seq for chain, seq in everything if chain == session_id]


def test_acts_are_filtered_by_session_action_principal_subject_and_time(caller: Caller, stage: Stage) -> None:
    session_id, other = act(stage), act(stage)
    [decided] = listed(caller, session_id=session_id, action="approval.decided")
    assert decided["principal"] == str(stage.principal)
    assert {row["chain"] for row in listed(caller, action="approval.decided")} == {session_id, other}
    assert decided in listed(caller, subject_id=decided["subject_id"])
    assert all(row["principal"] == "api_key:key_test" for row in listed(caller, principal="api_key:key_test"))
    after = listed(caller, **{"created_at[gt]": decided["created_at"]})
    until = listed(caller, **{"created_at[lte]": decided["created_at"]})
    assert decided in until
    assert len(after) + len(until) == len(listed(caller))
    assert listed(caller, action="nothing.done") == []
    bad(caller.get("/v1/audit", params={"page": "x"}), 400, "page")


def test_the_audit_is_verified_over_http(caller: Caller, stage: Stage, key: PublicKey, intruder: Intruder) -> None:
    session_id, other = act(stage), act(stage)
    sealed(stage)
    report = good(caller.get("/v1/audit/verify"))
    assert (report["intact"], report["problems"], report["unsealed"]) == (True, [], {"acts": 0, "since": None})
    assert report["keys"] == [{"id": key.id, "public_key": key.text}]
    head = good(caller.get("/v1/audit/head"))
    assert head["signed"] == report["signed"]
    signed = head["signed"]
    words = seal_key.signed_words(stage.workspace_id, signed["seq"], signed["hash"])
    assert seal_key.read_public(head["keys"][0]["public_key"]).has_signed(words, signed["signature"])
    intruder.do("DELETE FROM audit WHERE chain = %s AND seq = 3", session_id)
    [problem] = good(caller.get("/v1/audit/verify"))["problems"]
    assert (problem["kind"], problem["chain"], problem["first_seq"]) == ("removed", session_id, 3)
    assert good(caller.get("/v1/audit/verify", params={"session_id": other}))["intact"]


def test_too_many_acts_for_one_request_are_refused_with_the_remedy() -> None:
    items = iter([verifying.Head("c", 1, "")] * 3)
    with pytest.raises(Exception, match="assent audit verify"):
        list(audit._at_most(2, items))
    assert len(list(audit._at_most(3, iter([verifying.Head("c", 1, "")] * 3)))) == 3


def test_the_export_verifies(caller: Caller, stage: Stage, key: PublicKey) -> None:
    act(stage)
    sealed(stage)
    with caller.stream("GET", "/v1/audit/export") as answer:
        assert answer.status_code == 200
        workspace_id, items = verifying.read_export(answer.iter_lines())
        report = verifying.verify(workspace_id, items, [key])
    assert report.intact
    assert report.signed
    assert report.acts == len(listed(caller))


def test_the_audit_needs_the_scope_admin(api: str, stage: Stage) -> None:
    with Caller(api, key(stage, "read", "agents", "sessions", "approvals")) as backend:
        for path in ("", "/verify", "/head", "/export"):
            bad(backend.get(f"/v1/audit{path}"), 403, "'admin'")


def test_another_workspace_s_acts_are_never_shown(caller: Caller, api: str, stage: Stage) -> None:
    session_id = act(stage)
    sealed(stage)
    stranger = Stage()
    act(stranger)
    sealed(stranger)
    with Caller(api, key(stranger)) as other:
        assert listed(other, session_id=session_id) == []
        assert {row["chain"] for row in listed(caller)}.isdisjoint(row["chain"] for row in listed(other))
        for path in ("", "/verify", f"/verify?session_id={session_id}", "/head", "/export"):
            text = other.get(f"/v1/audit{path}").text
            assert stage.workspace_id not in text
            assert session_id not in text.replace(f"only {session_id} was", "")
        page = good(caller.get("/v1/audit", params={"limit": 1}))["next_page"]
        rows = good(other.get("/v1/audit", params={"page": page}))["data"]
        assert all(row["chain"] != session_id for row in rows)
    assert good(caller.get("/v1/audit/verify"))["intact"]
    assert json.dumps(good(caller.get("/v1/audit/head"))).count(stage.workspace_id) == 2
