"""Every boundary at which a process may die: both sides of every commit, publish, model call and effect."""

ARMED = "ASSENT_TEST_CRASHES"
"""Environment variable: the file of armed boundaries, one a line, in the order in which processes die at them."""

UNLISTED = "ASSENT_TEST_UNLISTED"
"""Environment variable: the file that gets the stack of each writing commit that is not in the table below."""

WRITES = {
    "claim_turn": "a turn is claimed",
    "checkpoint": "a reply is stored",
    "fold": "a summary of old turns is stored",
    "fail_turn": "a model's error is stored",
    "correct_usage": "the usage of an attempt that was ended from outside is stored",
    "claim_call": "a tool's attempt is stored",
    "finish_call": "a tool's result is stored",
    "tell": "a tool's output so far is stored",
    "lose_call": "a tool's outcome is stored as unknown",
    "dispatch_turns": "queued turns are stamped as hinted",
    "dispatch_calls": "queued calls are stamped as hinted",
    "rescue_turn": "a dead worker's turn is taken back",
    "rescue_call": "a dead worker's call is taken back",
    "expire_due": "an approval expires",
    "expire_calls": "a client's call expires",
    "release_waiting": "a grant releases calls that waited",
    "swept": "a sweep has finished with a grant",
    "remind_due": "people are reminded",
    "resume": "a session goes on after a halt",
    "resume_at_limit": "a session goes on below its spend limits",
    "settled": "every deadline is moved by a halt",
    "seal": "new acts of the audit's chains are sealed",
    "cut": "acts of the audit are deleted behind an anchor",
    "delete_old": "responses that are too old for any retry are deleted",
    "delete_archived": "a session whose archived content is kept no longer is deleted",
    "remove_batch": "rows of a deleted session are removed",
    "begin_part": "the row of a part of the archive is inserted",
    "store_content": "a part's content is stored in the database",
    "take_place": "a part takes the place of its rows",
    "remove_part": "an erased part is removed",
    "receive": "a client's events are stored",
    "offer_work": "work is offered to a worker that polls",
    "renew_work": "a worker acknowledges its work, or renews its lease",
    "look": "the change that a call would make is stored, to be shown",
    "respond": "a request's changes are stored with its response",
    "announce": "a worker announces its toolsets",
    "keep_listing": "an MCP server's listing is stored",
    "mark_stale": "an MCP server's listing is marked as changed",
}
"""Each transaction that changes something, by the verb in it."""

AROUND_COMMIT = ("before_commit", "after_commit", "after_publish")
"""Before the publish is not a boundary of its own: it is the same moment as after the commit."""

OUTSIDE = {
    "model.before": "the model has not been asked yet",
    "model.after": "the model has replied, and the reply is not stored",
    "effect.before": "the attempt is stored, and the tool has done nothing yet",
    "effect.after": "the tool has taken effect, and the result is not stored",
}
"""The boundaries to the outside world."""

BOUNDARIES = [f"{verb}.{side}" for verb in WRITES for side in AROUND_COMMIT] + list(OUTSIDE)


def of(verb: str) -> list[str]:
    """A verb's boundaries."""
    return [boundary for boundary in BOUNDARIES if boundary.startswith(f"{verb}.")]
