"""One session and random verbs: after every verb its rows agree with each other, on a real Postgres."""

from collections import Counter
from functools import partial
from typing import Any

from crashes.invariants import Seen, check_invariants
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test
from own_database import Clock
from rows.stage import Stage, call, say

from deploy.standin.pairing import check_pairs
from deploy.standin.rules import check as check_request
from models.database.rows import Stale
from models.database.transactions import transaction
from models.errors import Conflict, Invalid
from models.flow.begin import sessions
from models.flow.judge.grants import release_waiting
from models.flow.run import results
from models.session.approval.deadline import DeadlinePassed
from models.session.approval.decision import Decision
from models.session.approval.grant import Grant
from models.session.locked import Locked
from models.session.tool_call.row import ToolCall
from models.session.turn.row import Turn

CALLS = {
    "asked": lambda: call("bash", command="echo"),
    "allowed": lambda: call("edit", file_path="a", old_string="b", new_string="c"),
    "allowed and idempotent": lambda: call("read", file_path="a"),
    "asked and idempotent": lambda: call("write", file_path="a", content="b"),
    "never": lambda: call("glob", pattern="*"),
    "the client's": lambda: call("lookup", n=1),
    "the client's, asked": lambda: call("refund", n=1),
    "unknown": lambda: call("nosuch", n=1),
    "malformed": lambda: call("bash", nosuch=1),
}
POLICIES = {"bash": "always_ask", "edit": "always_allow", "read": "always_allow", "write": "always_ask", "glob": "never"}
DECISIONS = st.builds(
    dict,
    st.sampled_from(
        [
            {"result": "allow"},
            {"result": "deny"},
            {"result": "deny", "deny_message": "No."},
            {"result": "deny", "interrupt": True},
            {"result": "allow", "updated_input": {"command": "edited"}},
            {"result": "allow", "respond": (say("I did it myself."),)},
            {"result": "allow", "scope": "session"},
            {"result": "allow", "scope": "session", "match": "exact", "max_uses": 1},
            {"outcome": "rerun"},
            {"outcome": "give_up"},
            {"outcome": "happened", "content": (say("I looked."),)},
        ]
    ),
)
WRITING = {"edit", "write"}
"""Tools of which only one thread at a time runs calls."""
ANY = st.integers(min_value=0, max_value=30)
"""An index from the newest row, modulo the number of rows."""


class AnyVerbs(RuleBasedStateMachine):
    """A session and everybody who works on it. `turns` and `calls` are rows that workers hold or held."""

    stage: Stage
    clock: Clock

    def __init__(self) -> None:
        super().__init__()
        self.begin()

    def begin(self) -> None:
        """A new session."""
        self.session_id = self.stage.session(max_turns=3, custom=("lookup", "refund?"), **POLICIES)
        self.turns: list[Turn] = []
        self.calls: list[ToolCall] = []
        self.runs: Counter[str] = Counter()
        self.reruns: Counter[str] = Counter()
        self.seen: Seen

    @invariant()
    def the_rows_agree(self) -> None:
        """Check every invariant, after every verb."""
        self.seen = check_invariants(self.stage.workspace_id, self.session_id)
        for one in self.seen.calls:
            assert one.idempotent or self.runs[one.id] <= 1 + self.reruns[one.id], "only a person's rerun repeats an effect"

    def locked(self, verb: Any) -> Any:
        """Run a verb in its transaction."""
        return self.stage.locked(self.session_id, verb)

    @rule()
    def message(self) -> None:
        self.stage.message(self.session_id, "Go on.")

    @rule()
    @precondition(lambda self: self.seen.session.status != "idle")
    def interrupt(self) -> None:
        self.stage.send(self.session_id, {"type": "user.interrupt"})
        assert self.stage.read(self.session_id).status in {"idle", "stopping", "running"}

    @rule(which=ANY)
    @precondition(lambda self: [t for t in self.seen.turns if t.status == "queued"])
    def claim_turn(self, which: int) -> None:
        """And check that the model accepts the history."""
        turn = newest([t for t in self.seen.turns if t.status == "queued"], which)
        if turn.due_at > self.stage.locked(self.session_id, lambda locked: locked.now):
            self.clock.advance(61)
            return
        messages = self.stage.offered(self.session_id, turn.id)
        held = self.stage.claim_turn(self.session_id, turn.id)
        assert held
        self.turns.append(held)
        assert messages == self.stage.history_of(self.session_id, turn.thread_id), "a worker reads the same with its claim"
        check_request({"model": "stand-in", "max_tokens": 1, "messages": messages})
        check_pairs(messages)

    def block(self, kind: str) -> dict[str, Any]:
        """A tool call of the model, of this kind of `CALLS`."""
        return CALLS[kind]()

    @rule(which=ANY, kinds=st.lists(st.sampled_from(sorted(CALLS)), max_size=4))
    @precondition(lambda self: self.turns)
    def reply(self, which: int, kinds: list[str]) -> None:
        turn = newest(self.turns, which)
        content = [say("I would like to:"), *map(self.block, kinds)]
        self.stale_unless(turn, partial(self.stage.reply, self.session_id, *content, turn=turn))

    @rule(which=ANY, why=st.sampled_from(["refusal", "max_tokens"]))
    @precondition(lambda self: self.turns)
    def end_badly(self, which: int, why: str) -> None:
        """No call of a cut or refused reply is asked or run."""
        turn, content = newest(self.turns, which), [say("So far"), CALLS["allowed"]()]
        calls = len(self.seen.calls)
        self.stale_unless(turn, partial(self.stage.reply, self.session_id, *content, stop_reason=why, turn=turn))
        assert len(check_invariants(self.stage.workspace_id, self.session_id).calls) == calls

    @rule(which=ANY, retryable=st.booleans())
    @precondition(lambda self: self.turns)
    def fail(self, which: int, retryable: bool) -> None:
        turn = newest(self.turns, which)
        self.stale_unless(turn, partial(self.stage.fail, turn, retryable=retryable))

    @rule(which=ANY, decision=DECISIONS)
    @precondition(lambda self: self.seen.approvals)
    def decide(self, which: int, decision: dict[str, Any]) -> None:
        """The first decision in time wins, the same again is a no-op, and all others are refused."""
        before = newest(self.seen.approvals, which)
        same = before.decision == Decision(**decision).stored and before.status not in {"expired", "cancelled"}
        fits = ("outcome" in decision) == (before.kind == "unknown_outcome") or decision.get("result") == "deny"
        fits = fits and ("updated_input" not in decision or before.tool == "bash")
        try:
            event_id = self.stage.decide(before, **decision)
        except DeadlinePassed:
            assert before.status == "pending"
        except Conflict:
            assert before.status != "pending"
            assert not same
        except Invalid:
            assert before.status == "pending"
            assert not fits
        else:
            assert before.status == "pending" or (same and event_id == before.event_id)
            if before.status == "pending":
                assert fits
                self.reruns[before.tool_call_id] += decision.get("outcome") == "rerun"

    @rule(which=ANY)
    @precondition(lambda self: [c for c in self.seen.calls if c.status == "queued"])
    def claim_call(self, which: int) -> None:
        tool_call = newest([c for c in self.seen.calls if c.status == "queued"], which)
        held = self.stage.claim_call(tool_call)
        if held is None:
            if tool_call.name in WRITING and any(c.status == "running" and c.name in WRITING for c in self.seen.calls):
                self.clock.advance(3)
                return
            assert tool_call.grants, "only a call whose grant was revoked is asked instead"
            assert self.stage.get(ToolCall, tool_call.id).status == "asked"
            return
        self.runs[held.id] += 1
        self.calls.append(held)

    @rule(which=ANY)
    @precondition(lambda self: self.seen.calls)
    def a_doubled_message_claims_nothing(self, which: int) -> None:
        tool_call = newest(self.seen.calls, which)
        if tool_call.status != "queued":
            assert self.stage.claim_call(tool_call) is None

    @rule(which=ANY)
    @precondition(lambda self: self.calls)
    def finish_call(self, which: int) -> None:
        held = newest(self.calls, which)
        self.stale_unless(held, partial(self.stage.finish_call, held))

    @rule(which=ANY)
    @precondition(lambda self: self.calls)
    def lose_call(self, which: int) -> None:
        held = newest(self.calls, which)

        def verb(locked: Locked) -> None:
            results.lose_call(locked, held.as_held(locked.db))

        self.stale_unless(held, partial(self.locked, verb))

    @rule(which=ANY)
    @precondition(lambda self: [c for c in self.seen.calls if c.kind == "custom"])
    def client_result(self, which: int) -> None:
        tool_call = newest([c for c in self.seen.calls if c.kind == "custom"], which)
        event = {"type": "user.custom_tool_result", "custom_tool_use_id": tool_call.id, "content": [say("42")]}
        try:
            self.stage.send(self.session_id, event)
        except Invalid:
            assert tool_call.status not in {"with_client", "done"}
        else:
            assert tool_call.status in {"with_client", "done"}

    @rule()
    @precondition(lambda self: self.seen.grants)
    def release_granted(self) -> None:
        """Sweep twice. The second sweep is a no-op."""
        release_waiting(self.stage.workspace_id, self.session_id)
        assert release_waiting(self.stage.workspace_id, self.session_id) == 0

    @rule(which=ANY)
    @precondition(lambda self: self.seen.grants)
    def revoke(self, which: int) -> None:
        grant = newest(self.seen.grants, which)
        with transaction(self.stage.workspace_id) as db:
            Grant.find(db, grant.id).revoke(db, self.stage.principal)

    @rule(seconds=st.sampled_from([1, 46, 86_401]))
    def time_passes(self, seconds: int) -> None:
        """And the sweeps run."""
        self.clock.advance(seconds)
        for turn in self.turns:
            self.stage.rescue(turn)
        for held in self.calls:
            self.stage.rescue(held)
        self.stage.expire(self.session_id)

    @rule()
    @precondition(lambda self: self.seen.session.status in {"idle", "waiting"} and len(self.seen.turns) > 3)
    def archive(self) -> None:
        """Archiving is refused while a call is queued or running. Otherwise go on with a new session."""
        try:
            self.locked(sessions.archive)
        except Conflict:
            assert [c for c in self.seen.calls if c.status in {"queued", "running"}]
            return
        ended = check_invariants(self.stage.workspace_id, self.session_id)
        assert ended.session.status == "terminated"
        self.begin()

    def stale_unless(self, held: Turn | ToolCall, act: Any) -> None:
        """Write a row. Only its present holder succeeds."""
        now = self.stage.get(type(held), held.id)
        holds = (now.status, now.fence) == ("running", held.fence)
        try:
            act()
        except Stale:
            assert not holds, "the holder may write the row"
        else:
            assert holds, "a stale fence has written"


def newest(rows: list[Any], which: int) -> Any:
    """The row at this index from the newest."""
    return rows[-1 - which % len(rows)]


def test_any_verbs_in_any_order_keep_every_promise(stage: Stage, clock: Clock) -> None:
    machine = type("OnThisStage", (AnyVerbs,), {"stage": stage, "clock": clock})
    quick = settings(
        max_examples=8,
        stateful_step_count=35,
        phases=[Phase.generate],  # making a failure smaller takes minutes here: add Phase.shrink to look into one
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    run_state_machine_as_test(machine, settings=quick)
