"""Every status that a row can have, with one sentence each, and the transitions between them.

`models.database.rows.move` and `Locked.become` refuse every transition that these tables do not list. A session has the status of
its busiest thread.
"""

from typing import Literal

RunLimit = Literal["max_turns", "max_tokens", "context_window"]
"""The limits that end a run: turns for one message, output tokens of one reply, the model's context window."""

THREAD = {
    "idle": "Nothing of it is queued, running or waiting; a message starts it. Left by a message or by being archived.",
    "running": "A turn or an allowed call is queued or being worked on, and no person is needed.",
    "waiting": "At least one call, or the budget, needs a person or the client; other calls may still run.",
    "rescheduling": "The model failed for now; the turn is queued again for later.",
    "stopping": "An end was requested; running calls are being stopped, and nothing new starts.",
    "terminated": "Archived: the history stays, and no more events are accepted.",
}

TURN = {
    "queued": "Due at `due_at`; left by the claim of a worker, or by an interrupt.",
    "running": "A worker holds the lease and calls the model; after a crash the rescue sweep takes over.",
    "done": "The reply is the checkpoint; its tool calls continue on their own.",
    "failed": "No worker could begin it, the model gave no reply, or the reply ended the run; the session's events say why.",
    "cancelled": "An interrupt came before the checkpoint; the fence discards a reply in flight.",
}

TOOL_CALL = {
    "asked": "An approval is pending, before the call runs or as its tool asks back; left by a decision, grant, expiry or end.",
    "queued": "Allowed, for a worker to claim. The claim evaluates the policy again: asked if it now asks, done at once if cached.",
    "held": "Allowed for the client to run while the workspace is halted; the end of the halt gives it to the client.",
    "with_client": "Allowed, for the client to run; left by its result, its deadline or a cancellation.",
    "running": "A worker holds the lease; the attempt row was committed before the effect.",
    "unknown": "The call began and its end was never reported, or it may have run after a restored backup; a person settles it.",
    "done": "The call has a result, good or bad, from the tool, the client or a person.",
    "answered": "A person answered in the tool's place; the call never ran.",
    "replaced": "A person edited the input after the client had seen it; another call runs instead.",
    "denied": "A person or the policy denied the call; it never ran.",
    "expired": "Nobody decided in time, and the call never ran; or the client gave no result in time, and its effect is unknown.",
    "cancelled": "An interrupt or the run's end came first; or the worker was lost after one, and the call's effect is unknown.",
    "refused": "The call could not be asked or run: unknown tool, bad input, turn limit, changed input, or no worker can begin it.",
}

APPROVAL = {
    "pending": "People can decide until `expires_at`.",
    "allowed": "A person allowed the call; or a grant did, or the deadline if the tool's settings say so.",
    "denied": "A person denied the call.",
    "expired": "The deadline passed first.",
    "cancelled": "An interrupt or the archiving of the session withdrew the question.",
    "answered": "A person answered in the tool's place, or reported the outcome of a call whose outcome was unknown.",
}

WORK = {
    "queued": "For a worker of its environment to poll for.",
    "starting": "Offered to a worker that has sent no heartbeat yet; offered again if none comes in time.",
    "active": "A worker renews the lease by heartbeats; when they cease, the work is offered again.",
    "stopping": "The worker was asked to end; its next heartbeat's response says so.",
    "stopped": "Over; a session that needs a worker again gets new work.",
}

DELIVERY = {
    "queued": "Due at `due_at`; left by the claim of a worker.",
    "running": "A worker sends it; a crash leaves it to the rescue sweep.",
    "done": "The endpoint responded with a 2xx.",
    "failed": "No attempt got a 2xx and none is left, or none could begin; a person can have it sent again.",
    "cancelled": "Its endpoint was disabled before it could be sent.",
}

NOTIFICATION = {
    "queued": "Due at `due_at`; left by the claim of a worker.",
    "running": "A worker sends it; a crash leaves it to the rescue sweep.",
    "done": "The channel has the message of this stage; a later stage queues it again.",
    "failed": "The address is gone, no attempt succeeded and none is left, or none could begin; a later stage queues it again.",
    "cancelled": "There is nothing to send: decided before anything was sent, access lost, or the channel disabled.",
}

ARCHIVE_PART = {
    "writing": "Its content is being stored; the rows are still where they were. A sweep removes what a crash left.",
    "kept": "It has taken the place of the rows, which are deleted.",
    "gone": "It was erased, or never took the place of rows; a sweep removes its content, then the row.",
}

STATUSES = {
    "delivery": DELIVERY,
    "notification": NOTIFICATION,
    "thread": THREAD,
    "turn": TURN,
    "tool_call": TOOL_CALL,
    "approval": APPROVAL,
    "work": WORK,
    "archive_part": ARCHIVE_PART,
}

TRANSITIONS: dict[str, dict[str, frozenset[str]]] = {
    "delivery": {
        "queued": frozenset({"running", "cancelled", "failed"}),
        "running": frozenset({"done", "queued", "failed", "cancelled"}),
        "done": frozenset({"queued"}),
        "failed": frozenset({"queued"}),
        "cancelled": frozenset({"queued"}),
    },
    "notification": {
        "queued": frozenset({"running", "cancelled", "failed"}),
        "running": frozenset({"done", "queued", "failed"}),
        "done": frozenset({"queued"}),
        "failed": frozenset({"queued"}),
        "cancelled": frozenset({"queued"}),
    },
    "thread": {
        "idle": frozenset({"running", "terminated"}),
        "running": frozenset({"waiting", "rescheduling", "stopping", "idle"}),
        "waiting": frozenset({"running", "stopping", "idle"}),
        "rescheduling": frozenset({"running", "waiting", "stopping", "idle"}),
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
        "queued": frozenset({"running", "asked", "unknown", "done", "cancelled", "refused"}),
        "held": frozenset({"with_client", "unknown", "cancelled"}),
        "with_client": frozenset({"done", "unknown", "expired", "cancelled"}),
        "running": frozenset({"done", "asked", "queued", "unknown", "cancelled"}),
        "unknown": frozenset({"done", "queued", "held", "with_client", "cancelled"}),
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
    "archive_part": {
        "writing": frozenset({"kept", "gone"}),
        "kept": frozenset({"gone"}),
        "gone": frozenset(),
    },
}

SETTLED = frozenset(name for name, after in TRANSITIONS["tool_call"].items() if not after)
"""Final statuses: the call has a result for the model."""
NEEDS_PERSON = frozenset({"asked", "unknown"})
"""Statuses in which a call waits for a person."""
WITH_CLIENT = "with_client"
NEEDS_SOMEBODY = NEEDS_PERSON | {WITH_CLIENT}
"""Statuses in which a call waits for a person or the client."""


def check(table: str, old: str, new: str) -> None:
    """Raise ValueError if `table` lists no transition from `old` to `new`. Only a fault in this code can cause it, no request."""
    if new not in TRANSITIONS[table][old]:
        raise ValueError(f"{table}: no transition from {old} to {new}")
