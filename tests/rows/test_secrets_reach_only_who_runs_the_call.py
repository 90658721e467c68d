"""Only the worker or client that runs a call gets its secret arguments. No event, prompt or act has them."""

import json
from dataclasses import replace

from rows.stage import Stage, call, say

from models.audit.acts import Audit
from models.database.transactions import transaction
from models.session.tool_call.input import CallInput

SECRET = "ghp_" + "a1B2c3D4e5" * 3 + "F6g7H8"
COMMAND = f"GITHUB_TOKEN={SECRET} git push"


def visible(stage: Stage, session: str) -> str:
    """Everything that people and clients can see of a session, and its audit."""
    with transaction(stage.workspace_id) as db:
        acts = [row.details for row in db.find(Audit, "WHERE chain = %(chain)s", chain=session)]
    bodies = [event.body for event in stage.events(session)]
    shown = [(approval.prompt, approval.masked.arguments, approval.decision) for approval in stage.approvals(session)]
    return json.dumps([acts, bodies, shown])


def test_a_worker_gets_the_secret_and_nobody_sees_it(stage: Stage) -> None:
    session = stage.session()
    tool_call = stage.propose(session, call(command=COMMAND))
    assert SECRET not in visible(stage, session)
    stage.decide(stage.approvals(session)[0], result="allow")
    held = stage.begin_call(tool_call)
    assert stage.get(CallInput, held.id).input == {"command": COMMAND}
    stage.finish_call(held)
    assert SECRET not in visible(stage, session)
    assert "git push" in visible(stage, session), "the rest stays readable"


def test_an_edit_beside_a_masked_secret_runs_with_the_secret(stage: Stage) -> None:
    stage.principal = replace(stage.principal, scopes=stage.principal.scopes | {"reveal"})
    session = stage.session()
    tool_call = stage.propose(session, call(command=COMMAND, timeout_ms=60))
    [approval] = stage.approvals(session)
    stage.decide(approval, result="allow", updated_input=approval.masked.arguments | {"timeout_ms": 30})
    held = stage.begin_call(tool_call)
    assert stage.get(CallInput, held.id).input == {"command": COMMAND, "timeout_ms": 30}
    stage.finish_call(held)
    assert SECRET not in visible(stage, session)
    assert SECRET not in json.dumps(stage.history(session)[-1]), "the model sees the edit masked"
    stage.reply(session, say("Pushed."))
    stage.check(session)


def test_the_client_that_runs_its_own_tool_gets_its_input_whole(stage: Stage) -> None:
    session = stage.session(custom=("refund",))
    stage.propose(session, call("refund", n=1, note=SECRET))
    [event] = stage.events(session, "agent.custom_tool_use")
    assert event.body["input"] == {"n": 1, "note": SECRET}
