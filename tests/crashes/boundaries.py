"""Every boundary at which a process may die: both sides of every commit, publish, model call and effect."""

ARMED = "ASSENT_TEST_CRASHES"
"""Environment variable: the file of armed boundaries, one a line, in the order in which they are to be met."""

UNLISTED = "ASSENT_TEST_UNLISTED"
"""Environment variable: where a commit that wrote something and is not in the table below is told of, with its stack."""

WRITES = {
    "claim_turn": "a turn is claimed",
    "checkpoint": "a reply is kept",
    "fold": "a summary of old turns is kept",
    "fail_turn": "a model's error is kept",
    "correct_usage": "what an attempt consumed that was ended from outside is kept",
    "claim_call": "a tool's attempt is written",
    "finish_call": "a tool's result is kept",
    "tell": "what a tool has printed so far is kept",
    "lose_call": "a tool's outcome is given up as unknown",
    "dispatch_turns": "queued turns are stamped as hinted",
    "dispatch_calls": "queued calls are stamped as hinted",
    "rescue_turn": "a dead worker's turn is taken back",
    "rescue_call": "a dead worker's call is taken back",
    "expire_due": "an approval expires",
    "expire_calls": "a client's call expires",
    "release_waiting": "a grant lets calls go that waited",
    "swept": "a sweep has done with a grant",
    "remind_due": "people are reminded",
    "resume": "a session goes on after a halt",
    "resume_at_limit": "a session goes on below its spend limits",
    "settled": "every deadline is moved by a halt",
    "seal": "what the audit's chains have grown by is sealed",
    "forget_answers": "answers that are too old for any retry are deleted",
    "receive": "a client's events are stored",
    "offer_work": "work is offered to a worker that polls",
    "look": "what a call would change is kept, to be shown",
    "answer": "what a request has changed is kept, with its answer",
    "announce": "a worker tells which toolsets it has",
    "keep_listing": "what an MCP server lists is kept",
    "mark_stale": "an MCP server has said that its listing changed",
}
"""Each transaction that changes something, by the verb in it."""

AROUND_COMMIT = ("before_commit", "after_commit", "after_publish")
"""After the commit is before the publish: there is nothing between."""

OUTSIDE = {
    "model.before": "the model was not asked yet",
    "model.after": "the model has replied, and nobody has written it down",
    "effect.before": "the attempt is written, and the tool has done nothing yet",
    "effect.after": "the tool has taken effect, and nobody has written it down",
}
"""The boundaries to the outside world."""

BOUNDARIES = [f"{verb}.{side}" for verb in WRITES for side in AROUND_COMMIT] + list(OUTSIDE)


def of(verb: str) -> list[str]:
    """A verb's boundaries."""
    return [boundary for boundary in BOUNDARIES if boundary.startswith(f"{verb}.")]
