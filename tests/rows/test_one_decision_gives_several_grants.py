"""One decision gives a grant for each command of a line: all of them or none, each with its own event, act and uses."""

import pytest
from rows.stage import Stage, call, rules

from models.audit.acts import Audit
from models.database.transactions import transaction
from models.errors import Conflict, Forbidden, Invalid, Refusal
from models.session.approval.grant import Grant
from models.session.approval.row import Approval
from models.session.tool_call.row import ToolCall

LINE = "git add src && git commit -m 'All of it'"
BOTH = ("bash(git add *)", "bash(git commit *)")


def asked(stage: Stage, command: str = LINE, session_id: str = "") -> Approval:
    """The approval of a call that waits."""
    stage.propose(session_id or stage.session(max_turns=9), call(command=command))
    with transaction(stage.workspace_id) as db:
        return db.find(Approval, "WHERE status = 'pending' ORDER BY created_at")[-1]


def grants(stage: Stage) -> list[Grant]:
    with transaction(stage.workspace_id) as db:
        return db.find(Grant, "ORDER BY id")


def allow(stage: Stage, approval: Approval, *matches: str, **more: object) -> None:
    """Allow the call with these grants, and run it."""
    stage.decide(approval, result="allow", scope="session", matches=matches, **more)
    stage.run_call(stage.get(ToolCall, approval.tool_call_id))


def statuses(stage: Stage, session_id: str, *commands: str) -> list[str]:
    """The statuses of new calls with these commands."""
    return [tool_call.status for tool_call in stage.reply(session_id, *(call(command=one) for one in commands))]


def test_each_command_gets_a_grant_and_the_line_runs_unasked(stage: Stage) -> None:
    approval = asked(stage)
    allow(stage, approval, *BOTH, max_uses=5)
    add, commit = grants(stage)
    assert [grant.covers.partition(",")[0] for grant in (add, commit)] == [
        "every bash command that starts with `git add`",
        "every bash command that starts with `git commit`",
    ]
    assert {grant.approval_id for grant in (add, commit)} == {approval.id}
    events = stage.events(approval.session_id, "grant.given")
    assert [event.body["grant_id"] for event in events] == [add.id, commit.id]
    with transaction(stage.workspace_id) as db:
        acts = db.find(Audit, "WHERE action = 'grant.given' ORDER BY seq")
    assert [act.subject_id for act in acts] == [add.id, commit.id]
    [confirmation] = stage.events(approval.session_id, "user.tool_confirmation")
    assert confirmation.body["matches"] == list(BOTH)
    assert statuses(stage, approval.session_id, "git add x && git commit -m y", "git add z", "git push", "git add x; git push") == [
        "queued",
        "queued",
        "asked",
        "asked",
    ]
    assert [grant.uses for grant in grants(stage)] == [2, 1]


def test_none_of_them_covers_what_takes_something_away(stage: Stage) -> None:
    approval = asked(stage, "git checkout main && make test")
    allow(stage, approval, "bash(git checkout *)", "bash(make *)")
    commands = ("git checkout dev", "git checkout --force dev", "make test", "make clean", "git checkout dev && rm x")
    assert statuses(stage, approval.session_id, *commands) == ["queued", "asked", "queued", "asked", "asked"]


@pytest.mark.parametrize(
    ("command", "matches", "fault"),
    [
        (LINE, ("bash(git add *)", "bash(git"), "matches.1"),
        (LINE, ("bash(git add *)", "read(src/**)"), "matches.1"),
        (LINE, ("bash(git add *)", "bash"), "is about every call"),
        (LINE, ("bash(git add *)", "exact"), "is about every call"),
        (LINE, ("bash(git add *)", "bash(git add:*)"), "name each once"),
        ("git add . && git push --force", ("bash(git add *)", "bash(git push *)"), "`git push` in this line takes something away"),
        ("make && rm -rf build", ("bash(make *)",), "`rm` in this line takes something away"),
        ("make $X && ls", ("bash(make *)", "bash(ls *)"), "no pattern of commands covers this line"),
    ],
)
def test_a_fault_in_one_of_them_gives_none_and_decides_nothing(
    stage: Stage, command: str, matches: tuple[str, ...], fault: str
) -> None:
    approval = asked(stage, command)
    with pytest.raises(Invalid, match=fault):
        stage.decide(approval, result="allow", scope="session", matches=matches)
    assert grants(stage) == []
    assert stage.get(Approval, approval.id).status == "pending"


@pytest.mark.parametrize(
    ("decision", "fault"),
    [
        ({"scope": "once", "matches": BOTH}, "describes a grant"),
        ({"scope": "session", "matches": BOTH, "match": "exact"}, "send one of them"),
        ({"scope": "session", "matches": BOTH, "updated_input": {"command": "ls"}}, "only for the input as it was proposed"),
    ],
)
def test_several_grants_go_with_a_scope_alone(stage: Stage, decision: dict[str, object], fault: str) -> None:
    with pytest.raises(Invalid, match=fault):
        stage.decide(asked(stage), result="allow", **decision)


def test_a_tool_that_offers_exact_grants_alone_gives_none(stage: Stage) -> None:
    session_id = stage.session(approval={"widest_match": "exact"})
    with pytest.raises(Forbidden):
        stage.decide(asked(stage, session_id=session_id), result="allow", scope="session", matches=BOTH)


def test_the_limit_counts_all_of_them(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("models.session.approval.grant.MAX_OF_SESSION", 1)
    with pytest.raises(Conflict, match="has 0 grants already, of 1"):
        stage.decide(asked(stage), result="allow", scope="session", matches=BOTH)
    assert grants(stage) == []


def test_the_same_decision_again_changes_nothing_and_another_is_a_conflict(stage: Stage) -> None:
    approval = asked(stage)
    first = stage.decide(approval, result="allow", scope="session", matches=BOTH)
    assert stage.decide(approval, result="allow", scope="session", matches=BOTH) == first
    for matches in (BOTH[::-1], BOTH[:1]):
        with pytest.raises(Refusal):
            stage.decide(approval, result="allow", scope="session", matches=matches)
    assert len(grants(stage)) == 2


def test_a_grant_of_a_part_can_be_revoked_alone(stage: Stage) -> None:
    approval = asked(stage)
    allow(stage, approval, *BOTH)
    with transaction(stage.workspace_id) as db:
        Grant.find(db, grants(stage)[0].id).revoke(db, stage.principal)
    assert statuses(stage, approval.session_id, "git add x && git commit -m y", "git commit -m z") == ["asked", "queued"]


def test_a_rule_that_asks_or_denies_stands_before_them(stage: Stage) -> None:
    policy = rules(("ask", "bash(git push *)"), ("deny", "bash(git tag *)"))
    session_id = stage.session(max_turns=9, bash=policy)
    approval = asked(stage, "git add x && git commit -m y", session_id)
    allow(stage, approval, "bash(git *)", "bash(git add *)")
    assert statuses(stage, session_id, "git add x && git push", "git add x && git tag v1") == ["asked", "denied"]
