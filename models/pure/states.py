"""Every status that a row can have, one sentence each, and who may follow whom.

The tables are the whole truth about transitions: `models.database.rows.move` and `Session.become` refuse anything that is not in
them.
"""

SESSION = {
    "idle": "Nothing is queued, running or waiting; a message starts it. Left by a message or by being archived.",
    "running": "A turn or an allowed call is queued or being worked on, and no person is needed.",
    "waiting": "At least one call needs a person or the client; siblings that do not may still run.",
    "rescheduling": "The model failed in passing; the turn is queued again for later.",
    "stopping": "An end was asked for; calls that were running are being told, and nothing new starts.",
    "terminated": "Archived: it keeps its history and takes no more events.",
}

TURN = {
    "queued": "Due at `due_at`; left by the claim of a worker, or by an interrupt.",
    "running": "A worker holds its lease and talks to the model; a crash leaves it to the rescue sweep.",
    "done": "Its reply is the checkpoint; its tool calls live on by themselves.",
    "failed": "No reply could be had, or the reply ended the run; the session says why.",
    "cancelled": "An interrupt came before its checkpoint; a reply in flight is discarded by the fence.",
}

TOOL_CALL = {
    "asked": "An approval is pending, before it runs or since it asked something; left by a decision, a grant, an expiry, an end.",
    "queued": "Allowed, for a worker to claim, who judges it again: asked if a policy asks by then, done at once if cached.",
    "held": "Allowed for the client to run while the workspace is halted; the end of the halt gives it to the client.",
    "with_client": "Allowed, for the client to run; left by its result, its deadline or a cancellation.",
    "running": "A worker holds its lease; its attempt row was committed before the effect.",
    "unknown": "It began and nobody can say how it ended; a person settles it.",
    "done": "It has a result, good or bad, from the tool, the client or a person.",
    "answered": "A person answered in the tool's place; it never ran.",
    "replaced": "A person changed its input after the client had seen it; another call runs in its place.",
    "denied": "A person or the policy said no; it never ran.",
    "expired": "Nobody decided in time, and it never ran; or its client gave no result in time, and nobody knows how far it came.",
    "cancelled": "An interrupt or the run's end came first; or its worker was lost after one, and nobody knows how far it came.",
    "refused": "Not a call that could be asked or run: unknown tool, bad input, turn limit, changed input.",
}

APPROVAL = {
    "pending": "People can decide it until `expires_at`.",
    "allowed": "A person let the call go on; or a grant did, or the deadline where its tool says so.",
    "denied": "A person said no.",
    "expired": "The deadline passed first.",
    "cancelled": "The question went away: an interrupt, an archived session.",
    "answered": "A person answered in the tool's place, or said what became of a call whose outcome was unknown.",
}

WORK = {
    "queued": "For a worker of its environment to poll for.",
    "starting": "Offered to a worker that has sent no heartbeat yet; offered again if none comes in time.",
    "active": "A worker renews its lease by heartbeats; when they cease, it is offered again.",
    "stopping": "Its worker was asked to end, and learns so by its next heartbeat.",
    "stopped": "Over; a session that needs a worker again gets new work.",
}

STATUSES = {"session": SESSION, "turn": TURN, "tool_call": TOOL_CALL, "approval": APPROVAL, "work": WORK}

TRANSITIONS: dict[str, dict[str, frozenset[str]]] = {
    "session": {
        "idle": frozenset({"running", "terminated"}),
        "running": frozenset({"waiting", "rescheduling", "stopping", "idle"}),
        "waiting": frozenset({"running", "stopping", "idle"}),
        "rescheduling": frozenset({"running", "stopping", "idle"}),
        "stopping": frozenset({"running", "idle"}),
        "terminated": frozenset(),
    },
    "turn": {
        "queued": frozenset({"running", "cancelled", "failed"}),
        "running": frozenset({"done", "queued", "failed", "cancelled"}),
        "done": frozenset(),
        "failed": frozenset(),
        "cancelled": frozenset(),
    },
    "tool_call": {
        "asked": frozenset({"queued", "held", "with_client", "answered", "replaced", "denied", "expired", "cancelled"}),
        "queued": frozenset({"running", "asked", "done", "cancelled", "refused"}),
        "held": frozenset({"with_client", "cancelled"}),
        "with_client": frozenset({"done", "expired", "cancelled"}),
        "running": frozenset({"done", "asked", "queued", "unknown", "cancelled"}),
        "unknown": frozenset({"done", "queued", "cancelled"}),
        "done": frozenset(),
        "answered": frozenset(),
        "replaced": frozenset(),
        "denied": frozenset(),
        "expired": frozenset(),
        "cancelled": frozenset(),
        "refused": frozenset(),
    },
    "approval": {
        "pending": frozenset({"allowed", "denied", "expired", "cancelled", "answered"}),
        "allowed": frozenset(),
        "denied": frozenset(),
        "expired": frozenset(),
        "cancelled": frozenset(),
        "answered": frozenset(),
    },
    "work": {
        "queued": frozenset({"starting", "stopped"}),
        "starting": frozenset({"active", "queued", "stopping", "stopped"}),
        "active": frozenset({"queued", "stopping", "stopped"}),
        "stopping": frozenset({"stopped"}),
        "stopped": frozenset(),
    },
}

SETTLED = frozenset(name for name, after in TRANSITIONS["tool_call"].items() if not after)
"""A call in one of these has its result, and the model can be told."""
NEEDS_SOMEBODY = frozenset({"asked", "with_client", "unknown"})
"""A call in one of these goes no further without a person or the client."""


def check(table: str, old: str, new: str) -> None:
    """Raise ValueError if `table` knows no way from status `old` to `new`: a mistake in our code, never a caller's."""
    if new not in TRANSITIONS[table][old]:
        raise ValueError(f"{table}: no transition from {old} to {new}")
