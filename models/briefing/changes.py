"""What differs since people were asked: the files that a tools worker saw, the branch, an amount, and what the session has cost."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from models.briefing.amounts import differing_amounts
from models.database.rows import Db
from models.pure.json.canonical import canonical
from models.pure.state_words import APPROVAL
from models.pure.text.visible import visible
from models.session.approval.evidence import Evidence
from models.session.approval.kinds import budget, tool_call
from models.session.approval.row import Approval
from models.session.row import Session
from models.workspace.toolset import listings_at

_COMPARED = 100
"""The most calls of the same tool and agent that are read: the newest."""
_LONGEST = 10_000
"""Longer inputs, in characters, are not compared."""
_LIKE_IT = f"""
    SELECT coalesce(decided_input, input), status
    FROM (
        SELECT * FROM approval WHERE agent_id = %(agent)s AND likeness = %(likeness)s AND {tool_call.KIND.sql}
        ORDER BY created_at DESC LIMIT {_COMPARED}
    ) newest
    WHERE session_id = %(session)s AND tool = %(tool)s AND id <> %(this)s AND shown_input IS NULL AND decided_shown IS NULL
    AND length(coalesce(decided_input, input)) <= {_LONGEST}
    ORDER BY created_at DESC, id DESC
"""  # noqa: S608 - a condition of our own
"""Other calls of the session, with the input that runs. Those with secrets are left out."""


def changes_since(db: Db, approval: Approval) -> list[str]:
    """Return a sentence for each thing that differs since people were asked. Only of an approval that waits."""
    if approval.status != "pending":
        return []
    if approval.tool_call_id is None:
        return list(_of_cost(db, approval))
    evidence = db.get(Evidence, approval.id)
    of_files = _of_files(evidence.first_body, evidence.body) if evidence and evidence.first_body else ()
    return [*of_files, *_of_tool(db, approval), *_of_amount(db, approval)]


def _of_cost(db: Db, approval: Approval) -> Iterator[str]:
    """Yield what the session has cost, if the question names another amount. One about a spend limit names none."""
    cost = db.get_one(Session, approval.session_id).list_cost
    if approval.tool == budget.TOOL and budget.spent_in_words(cost) not in approval.prompt:
        yield f"The session has cost ${cost:.2f} by now."


def _of_tool(db: Db, approval: Approval) -> Iterator[str]:
    """Yield what differs in the declaration of a tool that a server offers."""
    call = approval.call(db)
    listing = listings_at(db, {call.address}).get(call.address) if call.address and call.tool else None
    if listing is None or approval.input_schema is None:
        return
    entry = listing.entry(call.tool)
    if entry is None:
        yield "Since it was asked, the tool's server has stopped offering it: the call would fail now."
    elif canonical(entry["input_schema"]) != canonical(approval.input_schema):
        names = _differing(approval.input_schema.get("properties") or {}, entry["input_schema"].get("properties") or {})
        of = f" of {', '.join(visible(name) for name in names)}" if names else ""
        yield f"Since it was asked, the tool has changed its declaration{of}. A person is asked again before such a call runs."


def _of_amount(db: Db, approval: Approval) -> Iterator[str]:
    """Yield what the newest call says that the session asked for too, and that differs from this one in nothing but amounts."""
    its_input = approval.decided_input or approval.input
    if not approval.call(db).address or approval.likeness is None or approval.shown_input or approval.decided_shown:
        return
    if len(its_input) > _LONGEST:
        return
    place = {"session": approval.session_id, "tool": approval.tool, "this": approval.id}
    for text, status in db.rows(_LIKE_IT, agent=approval.agent_id, likeness=approval.likeness, **place):
        if amounts := differing_amounts(json.loads(its_input), json.loads(text)):
            here = " and ".join(f"{visible(name)} {value}" for name, value, _ in amounts[:3])
            there = " and ".join(f"{visible(name)} {other}" for name, _, other in amounts[:3])
            yield f"This session asked for the same with {there}, which is {APPROVAL[status].word}. It is {here} here."
            return


def _differing(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Return the names of at most three arguments that are declared otherwise than before."""
    names = dict.fromkeys([*before, *now])
    return [name for name in names if canonical(before.get(name)) != canonical(now.get(name))][:3]


def _of_files(before: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    if "problem" in now and "problem" not in before:
        yield "Since it was asked, the files have changed: the call would fail now."
    elif "problem" in before and "problem" not in now:
        yield "When it was asked, the call would have failed. The files have changed since."
    elif now.get("is_new") != before.get("is_new"):
        yield "Since it was asked, the file was removed." if now.get("is_new") else "Since it was asked, the file was made."
    elif "hunks" in now and now["hunks"] != before.get("hunks"):
        yield "Since it was asked, the file has changed. The change is shown as it would be now."
    if now.get("directory") != before.get("directory") and "directory" in now and "directory" in before:
        yield f"When it was asked, the command would have started in {before['directory']}."
    elif now.get("branch") != before.get("branch"):
        yield f"When it was asked, the branch was {before.get('branch') or 'none'}; it is {now.get('branch') or 'none'} now."
    elif now.get("commit") != before.get("commit"):
        yield f"Since it was asked, the branch {now.get('branch')} has moved to another commit."
