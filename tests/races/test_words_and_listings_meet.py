"""A chat word and a change of what waits come at once: the word decides what its writer was shown, or nothing."""

from functools import partial

from own_database import Clock
from races.races_together import together
from rows.stage import Stage, call, say

from models.errors import Conflict
from models.session.tool_call.row import ToolCall


def test_a_word_that_meets_a_new_listing_decides_the_old_one_or_nothing(stage: Stage, clock: Clock) -> None:
    """In twenty rounds. Another door denies the first of two calls, which lists the second one again."""
    ways = set()
    for _ in range(20):
        session = stage.session(chat_approvals=True)
        stage.message(session)
        first, second = stage.reply(session, call(command="ls"), call(command="pwd"))
        clock.advance(2)
        word = {"type": "user.message", "content": [say("approve all")]}
        denied, _ = together(partial(stage.confirm, session, first.id, "deny"), partial(stage.send, session, word))
        statuses = [stage.get(ToolCall, each.id).status for each in (first, second)]
        assert statuses == (["queued", "queued"] if isinstance(denied, Conflict) else ["denied", "asked"])
        listings = [event.body["assent"]["approval_ids"] for event in stage.events(session, "agent.message")]
        assert len(listings) == (2 if isinstance(denied, Conflict) else 3), "the word is asked back with another listing"
        stage.check(session)
        ways.add(statuses[1])
    assert ways <= {"queued", "asked"}


def test_of_equal_words_at_once_one_decides(stage: Stage, clock: Clock) -> None:
    """The others find nothing that waits, and are messages."""
    session = stage.session(chat_approvals=True)
    stage.message(session)
    [tool_call] = stage.reply(session, call(command="ls"))
    clock.advance(2)
    stored = together(*[partial(stage.message, session, "yes")] * 5)
    assert sum(event.processed_at is not None for event in stored) == 1
    assert stage.get(ToolCall, tool_call.id).status == "queued"
    assert len(stage.events(session, "user.tool_confirmation")) == 1
