"""Edited inputs: a person changes the input of a call before it runs."""

import json
from typing import Any

from models.errors import Conflict, Invalid
from models.flow.judge import votes
from models.flow.judge.grants import session_policies, verdict_on
from models.people.deciders import shortage
from models.pure import masking
from models.pure.json.canonical import digest
from models.pure.json.fitting import misfit
from models.pure.quorum import Quorum
from models.session.approval.row import Approval
from models.session.locked import Locked
from models.session.tool_call.input import CallInput
from models.session.tool_call.proposal import MAX_INPUT_BYTES


def take_edit(locked: Locked, approval: Approval, updated: dict[str, Any]) -> None:
    """Store the decision's `updated_input` as the input that would run. Votes for the former input are void.

    Raises Invalid if the updated input is too long, misplaces a marker, does not fit the tool's schema, or is denied by a rule; and
    with four eyes, if nobody is left who may allow it.
    """
    edited, shown, secrets = _edited(locked, approval, updated)
    if digest(edited) == approval.runs:  # to Python, 1 is True
        return
    votes.void(locked, approval)
    call_input = approval.call_input(locked.db)
    if digest(edited) == approval.input_sha256:
        approval.unedit(call_input.askers(locked) if call_input else locked.session.askers)
        return
    if call_input:
        call_input.add_secrets(secrets)
    approval.edit(edited, shown, locked.actor)
    quorum = Quorum.of(approval.quorum)
    if quorum.four_eyes and (lack := shortage(locked.db, quorum, approval.started_by)):
        raise Invalid("updated_input", f"with four eyes, somebody else must allow what you edited. {lack} Nothing was decided.")


def check_runs(locked: Locked, approval: Approval) -> None:
    """Raise Conflict if a rule now denies the input that would run, Invalid if that input no longer fits the tool's schema."""
    call = approval.call(locked.db)
    call_input = CallInput.of(locked.db, call)
    runs = json.loads(approval.decided_input) if approval.decided_input else call_input.input
    verdict = verdict_on(session_policies(locked), call, call_input, instead=runs)
    if verdict.effect == "deny":
        message = f"This call is not permitted any more ({verdict.rule}): deny it, or answer in its place. Nothing was decided."
        raise Conflict(message, {"rule": verdict.rule})
    if approval.input_schema is not None and (fault := misfit(approval.input_schema, runs)):
        raise Invalid(
            "result", f"the tool has changed, and this input no longer fits: allow it with updated_input, or deny. {fault}"
        )


def _edited(locked: Locked, approval: Approval, updated: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any], tuple[str, ...]]:
    """Return `updated` with the values behind its markers, `updated` with all secrets masked, and the secrets of the former.

    The masked input is built from `updated`, so a marker stays a marker even if the text around it changed.
    """
    schema, call_input = approval.input_schema, approval.call_input(locked.db)
    original = call_input.input if call_input else json.loads(approval.input)
    before = json.loads(approval.decided_input) if approval.decided_input else original
    if len(json.dumps(updated)) > MAX_INPUT_BYTES:
        raise Invalid("updated_input", f"is longer than {MAX_INPUT_BYTES} bytes.")
    try:
        edited: dict[str, Any] = masking.restore(
            updated,
            before,
            approval.decided_shown or approval.masked.arguments,
            may_see="reveal" in locked.actor.scopes,
        )
        digest(edited)
    except (ValueError, RecursionError) as error:
        raise Invalid("updated_input", str(error)) from None
    if schema is not None and (fault := misfit(schema, edited)):
        raise Invalid("updated_input", f"does not fit the tool's schema. {fault}")
    if call_input and approval.traits.asks_to_run:
        verdict = verdict_on(session_policies(locked), approval.call(locked.db), call_input, instead=edited)
        if verdict.effect == "deny":
            raise Invalid("updated_input", f"is not permitted here ({verdict.rule}). Nothing was decided.")
    secrets = (call_input.secrets or ()) if call_input else ()
    shown = masking.Echoes(secrets).value(masking.mask(updated, schema).arguments)
    return edited, shown, masking.mask(edited, schema).secrets
