"""The workspace's own policy is read and changed by scope, is audited, and holds for every session at once."""

import json
from typing import Any

from doors.served import Caller, bad, good, key, message
from rows.stage import Stage, call

from models.audit import text as audit_text
from models.audit.acts import Audit
from models.database.transactions import transaction

RULES = {"type": "rules", "rules": [{"effect": "deny", "match": "bash(rm *)", "reason": "No."}], "default": "allow"}
RETURNED = RULES | {"type": "auto"}
NOTHING: dict[str, Any] = {
    "type": "policy",
    "permission_policy": None,
    "approval": None,
    "model": None,
    "chat_words": None,
    "denial_reasons": None,
    "retention": None,
}


def acts(stage: Stage) -> list[Audit]:
    """Return the audit acts about the policy."""
    with transaction(stage.workspace_id) as db:
        return db.find(Audit, "WHERE action = %(action)s ORDER BY seq", action="policy.changed")


def test_a_new_workspace_has_none(caller: Caller) -> None:
    assert good(caller.get("/v1/policy")) == NOTHING


def test_an_omitted_field_is_kept_and_null_clears(caller: Caller) -> None:
    assert good(caller.post("/v1/policy", json={"permission_policy": RULES}))["permission_policy"] == RETURNED
    policy = good(caller.post("/v1/policy", json={"approval": {"timeout_seconds": 60, "on_timeout": "end_run"}}))
    assert policy["permission_policy"] == RETURNED
    assert policy["approval"] == {"timeout_seconds": 60, "on_timeout": "end_run", "remind_after_seconds": None}
    assert good(caller.get("/v1/policy")) == policy
    assert good(caller.post("/v1/policy", json={"permission_policy": None, "approval": None})) == NOTHING


def test_a_change_is_audited_with_both_policies_and_the_same_again_is_not(caller: Caller, stage: Stage) -> None:
    for _ in range(2):
        good(caller.post("/v1/policy", json={"permission_policy": RULES, "approval": None}))
    good(caller.post("/v1/policy", json={"permission_policy": {"type": "always_deny"}}))
    first, second = acts(stage)
    with transaction(stage.workspace_id) as db:
        texts = audit_text.of(db, [(act.chain, act.seq) for act in (first, second)])
    changes = [{name: json.loads(text) for name, text in texts[act.chain, act.seq].items()} for act in (first, second)]
    denied = {"type": "auto", "rules": [], "default": "deny"}
    assert changes == [{"policy.from": None, "policy.to": RETURNED}, {"policy.from": RETURNED, "policy.to": denied}]
    assert first.principal.startswith("api_key:key_")
    assert first.subject_id == stage.workspace_id


def test_chat_words_are_kept_in_one_form_and_have_one_meaning(caller: Caller, stage: Stage) -> None:
    words = good(caller.post("/v1/policy", json={"chat_words": {"allow": ["Genehmigt!", "genehmigt"], "deny": ["nein"]}}))
    assert words == NOTHING | {"chat_words": {"allow": ["genehmigt"], "deny": ["nein"]}}
    for wrong, field in (
        ({"deny": ["ja", "ok"]}, "chat_words.deny.1"),
        ({"allow": ["nein"], "deny": ["Nein"]}, "chat_words.deny.0"),
    ):
        bad(caller.post("/v1/policy", json={"chat_words": wrong}), 400, field)
    bad(caller.post("/v1/policy", json={"chat_words": {"allow": [""]}}), 400, "chat_words.allow.0")
    session_id = caller.session(chat_approvals=True)["id"]
    caller.say(session_id)
    [tool_call] = stage.reply(session_id, call())
    seen = caller.events(session_id)[-1]["id"]
    good(caller.tell(session_id, message("nein: zu spät") | {"seen": seen}))
    assert "zu spät" in stage.result(tool_call)


def test_a_change_from_1_to_true_is_stored(caller: Caller) -> None:
    """In Python both are equal, so that a comparison could miss the change."""
    for value in (1, True):
        rule = {"effect": "deny", "match": {"tool": "t", "input": [{"path": "/a", "equals": value}]}}
        policy = {"type": "rules", "rules": [rule], "default": "ask"}
        stored = good(caller.post("/v1/policy", json={"permission_policy": policy}))
        assert stored["permission_policy"]["rules"][0]["match"]["input"][0]["equals"] is value


def test_it_holds_for_running_sessions(caller: Caller, stage: Stage) -> None:
    session = caller.session()["id"]
    caller.say(session)
    [tool_call] = stage.reply(session, call(command="ls"))
    assert tool_call.status == "asked"
    good(caller.post(f"/v1/approvals/{stage.approvals(session)[0].id}/decision", json={"result": "allow"}))
    good(caller.post("/v1/policy", json={"permission_policy": RULES, "approval": {"timeout_seconds": 60}}))
    stage.run_call(tool_call)
    allowed, denied = stage.reply(session, call(command="ls"), call(command="rm -rf x"))
    assert (allowed.status, denied.status) == ("queued", "denied")
    assert denied.rule == "workspace rule: deny bash(rm *) (No.)"


def test_reading_it_needs_read_and_changing_it_needs_admin(api: str, stage: Stage) -> None:
    with Caller(api, key(stage, "read", "agents", "sessions", "approvals")) as agent, Caller(api, key(stage, "admin")) as admin:
        good(agent.get("/v1/policy"))
        bad(agent.post("/v1/policy", json={"permission_policy": {"type": "always_allow"}}), 403, "admin")
        bad(admin.get("/v1/policy"), 403, "read")
        good(admin.post("/v1/policy", json={"permission_policy": {"type": "always_deny"}}))
        assert good(agent.get("/v1/policy"))["permission_policy"]["default"] == "deny"


def test_the_reasons_for_a_denial_are_the_workspace_s_and_limited(caller: Caller) -> None:
    reasons = ["  CI makes the releases.  ", "Not on a Friday."]
    kept = good(caller.post("/v1/policy", json={"denial_reasons": reasons}))["denial_reasons"]
    assert kept == ["CI makes the releases.", "Not on a Friday."]
    bad(caller.post("/v1/policy", json={"denial_reasons": ["x"] * 10}), 400, "denial_reasons")
    bad(caller.post("/v1/policy", json={"denial_reasons": [" "]}), 400, "denial_reasons.0")
    bad(caller.post("/v1/policy", json={"denial_reasons": ["x" * 201]}), 400, "denial_reasons.0")
    assert good(caller.post("/v1/policy", json={"denial_reasons": None})) == NOTHING
