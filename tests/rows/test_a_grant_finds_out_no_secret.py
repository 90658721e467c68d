"""A grant covers a call only if it fits what people see of the call: whatever the secrets are, and the real input too."""

from typing import Any

import pytest
from rows.stage import Stage, call, rules

from models.database.transactions import transaction
from models.flow.judge.grants import release_waiting
from models.session.approval.grant import Grant
from models.session.approval.grant_use import uses_of
from models.session.tool_call.row import ToolCall

SECRET = "hunter2-very-secret"
LINE = f"deploytool --password={SECRET} -e x"
GUESSES = [
    *("deploytool --password=h* -e x", f"deploytool --password={SECRET} -e x", "deploytool --password=*secret -e x"),
    # These fit the mask itself, and would tell that the secret has its letters.
    *("deploytool --password=*e* -e x", "deploytool --password=*d -e x", "deploytool --password=«* -e x"),
]
COVERING = ["deploytool *", "deploytool --password=* -e x", "* -e x"]


def waiting(stage: Stage, line: str = LINE, **fields: Any) -> tuple[str, ToolCall, ToolCall]:
    """Return a session with a harmless call and a call with a secret, which both wait."""
    session = stage.session(**fields)
    stage.message(session)
    harmless, secret = stage.reply(session, call(command="echo harmless"), call(command=line))
    return session, harmless, secret


@pytest.mark.parametrize("guess", GUESSES)
def test_a_guess_releases_no_waiting_call(stage: Stage, guess: str) -> None:
    session, harmless, secret = waiting(stage)
    stage.confirm(session, harmless.id, scope="session", match=f"bash({guess})")
    assert release_waiting(stage.workspace_id, session) == 0
    assert stage.get(ToolCall, secret.id).status == "asked"


@pytest.mark.parametrize("match", COVERING)
def test_a_grant_that_says_nothing_about_the_secret_releases_it(stage: Stage, match: str) -> None:
    session, harmless, secret = waiting(stage)
    stage.confirm(session, harmless.id, scope="session", match=f"bash({match})")
    assert release_waiting(stage.workspace_id, session) == 1
    assert stage.get(ToolCall, secret.id).status == "queued"


def after_grant(stage: Stage, granted_line: str, match: str, line: str) -> tuple[ToolCall, Grant]:
    """Return a proposed call of another session, and the standing grant of a decision on `granted_line`."""
    session = stage.session()
    stage.confirm(session, stage.propose(session, call(command=granted_line)).id, scope="always", match=match)
    [event] = stage.events(session, "grant.given")
    proposed = stage.propose(stage.session(of_agent=stage.read(session).agent_id), call(command=line))
    return proposed, stage.get(Grant, event.body["grant_id"])


@pytest.mark.parametrize("guess", GUESSES)
def test_a_guess_allows_no_proposed_call_and_counts_no_use(stage: Stage, guess: str) -> None:
    proposed, grant = after_grant(stage, "echo harmless", f"bash({guess})", LINE)
    assert proposed.status == "asked"
    with transaction(stage.workspace_id) as db:
        assert uses_of(db, [grant.id])[grant.id].calls == 0


@pytest.mark.parametrize(("match", "line"), [("exact", LINE), ("tool", LINE), ("bash(deploytool *)", LINE)])
def test_a_grant_covers_a_secret_that_it_does_not_name(stage: Stage, match: str, line: str) -> None:
    proposed, grant = after_grant(stage, LINE, match, line)
    assert proposed.status == "queued"
    with transaction(stage.workspace_id) as db:
        assert uses_of(db, [grant.id])[grant.id].calls == 1
    assert stage.claim_call(proposed)  # judged again


def test_each_command_of_a_line_needs_a_grant_that_fits_it_as_shown(stage: Stage) -> None:
    line = f"echo a; {LINE}"
    proposed, _ = after_grant(stage, "echo a; deploytool --password=h", "bash(deploytool --password=h* -e x)", line)
    assert proposed.status == "asked"


def test_rules_that_deny_or_ask_see_the_real_input(stage: Stage) -> None:
    for effect, status in (("deny", "denied"), ("ask", "asked")):
        session = stage.session(bash=rules((effect, f"bash(* --password={SECRET} *)"), default="allow"))
        assert stage.propose(session, call(command=LINE)).status == status
