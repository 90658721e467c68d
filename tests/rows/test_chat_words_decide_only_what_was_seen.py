"""If the session allows chat approvals, a word in the chat decides a call that its writer has certainly seen."""

from typing import Any

import pytest
from rows.stage import Stage, call, say

from models import flow
from models.audit.principal import Principal
from models.errors import Invalid
from models.pure import chat
from models.session.event import Event
from models.session.tool_call import ToolCall


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("approve", chat.Word("allow")),
        (" Yes! ", chat.Word("allow")),
        ("APPROVE  ALL", chat.Word("allow", all=True)),
        ("no", chat.Word("deny")),
        ("reject.", chat.Word("deny")),
        ("reject: too\ndangerous", chat.Word("deny", reason="too\ndangerous")),
        ("No: use staging", chat.Word("deny", reason="use staging")),
        ("yes, but only the first", None),
        ("approve the plan", None),
        ("no idea", None),
        ("reject:", None),
        ("", None),
        ("yesterday", None),
    ],
)
def test_only_exact_words_decide(text: str, word: chat.Word | None) -> None:
    assert chat.meaning(text) == word


def waiting(stage: Stage, clock: Any, *commands: str) -> tuple[str, list[ToolCall]]:
    """A chat session with calls that have waited long enough to have been seen."""
    session = stage.session(chat_approvals=True)
    stage.message(session)
    tool_call = stage.reply(session, *(call(command=one) for one in commands))
    clock.advance(11)
    return session, tool_call


def tell(stage: Stage, session: str, text: str, **more: Any) -> Event:
    return stage.send(session, {"type": "user.message", "content": [say(text)], **more})[0]


def statuses(stage: Stage, calls: list[ToolCall]) -> list[str]:
    return [stage.get(ToolCall, tool_call.id).status for tool_call in calls]


def last_shown(stage: Stage, session: str) -> str:
    return stage.events(session)[-1].id


def test_yes_allows_the_one_call_that_waits(stage: Stage, clock: Any) -> None:
    session, calls = waiting(stage, clock, "ls")
    stored = tell(stage, session, "yes")
    assert statuses(stage, calls) == ["queued"]
    assert stored.processed_at is not None
    assert stage.approvals(session)[0].decided_by == str(stage.principal)
    stage.run_call(calls[0])
    assert all(say("yes") not in message["content"] for message in stage.history(session)), "the model never sees it"


def test_no_with_a_reason_tells_the_model_why(stage: Stage, clock: Any) -> None:
    session, calls = waiting(stage, clock, "rm x")
    tell(stage, session, "reject: ask Ann first")
    assert statuses(stage, calls) == ["denied"]
    assert "ask Ann first" in stage.result(calls[0])


def test_a_word_just_after_the_question_is_asked_back(stage: Stage, clock: Any) -> None:
    """Its writer may have meant what stood there before."""
    session = stage.session(chat_approvals=True)
    stage.message(session)
    calls = stage.reply(session, call(command="rm x"))
    clock.advance(9)
    tell(stage, session, "yes")
    assert statuses(stage, calls) == ["asked"]
    events = stage.events(session)
    assert "look again" in events[-2].body["content"][0]["text"]
    assert (events[-1].type, events[-1].body["stop_reason"]["type"]) == ("session.status_idle", "requires_action")


def test_a_word_that_names_the_last_seen_event_decides_at_once(stage: Stage, clock: Any) -> None:
    session = stage.session(chat_approvals=True)
    stage.message(session)
    calls = stage.reply(session, call(command="ls"))
    tell(stage, session, "yes", seen=last_shown(stage, session))
    assert statuses(stage, calls) == ["queued"]


def test_seeing_the_call_s_event_is_enough(stage: Stage, clock: Any) -> None:
    """A plain client does not know the events of approvals; the call's event says that it asks."""
    session = stage.session(chat_approvals=True)
    stage.message(session)
    calls = stage.reply(session, call(command="ls"), call(command="pwd"))
    uses = stage.events(session, "agent.tool_use")
    tell(stage, session, "yes", seen=uses[1].id)
    assert statuses(stage, calls) == ["asked", "asked"], "both were seen"
    tell(stage, session, "yes", seen=uses[0].id)
    assert statuses(stage, calls) == ["queued", "asked"]


def test_a_word_does_not_decide_a_call_asked_after_the_last_seen_event(stage: Stage, clock: Any) -> None:
    session = stage.session(chat_approvals=True)
    message = stage.message(session)
    calls = stage.reply(session, call(command="rm x"))
    clock.advance(60)
    tell(stage, session, "yes", seen=message.id)
    assert statuses(stage, calls) == ["asked"]


def test_yes_to_several_calls_is_asked_back_and_approve_all_gives_grants(stage: Stage, clock: Any) -> None:
    session, calls = waiting(stage, clock, "ls", "pwd")
    seen = last_shown(stage, session)
    tell(stage, session, "yes", seen=seen)
    assert statuses(stage, calls) == ["asked", "asked"]
    tell(stage, session, "approve all", seen=seen)
    assert statuses(stage, calls) == ["queued", "queued"]
    [grant] = stage.events(session, "grant.given")
    assert grant.body["scope"] == "session"
    assert grant.body["covers"].startswith("every call of bash (")
    assert "every call of bash" in stage.events(session, "agent.message")[-1].body["content"][0]["text"]


def test_no_word_decides_several_calls_without_the_last_seen_event(stage: Stage, clock: Any) -> None:
    session, calls = waiting(stage, clock, "ls", "pwd")
    for word in ("yes", "no", "approve all"):
        tell(stage, session, word)
    assert statuses(stage, calls) == ["asked", "asked"]


def test_any_other_text_is_a_message(stage: Stage, clock: Any) -> None:
    session, calls = waiting(stage, clock, "ls")
    stored = tell(stage, session, "yes, but hurry")
    assert stored.processed_at is None
    assert statuses(stage, calls) == ["asked"]


def test_a_word_in_a_session_without_chat_approvals_is_a_message(stage: Stage, clock: Any) -> None:
    session = stage.session()
    stage.message(session)
    calls = stage.reply(session, call())
    clock.advance(60)
    assert tell(stage, session, "yes").processed_at is None
    assert statuses(stage, calls) == ["asked"]


def test_a_word_while_nothing_waits_is_a_message(stage: Stage) -> None:
    session = stage.session(chat_approvals=True)
    stored = tell(stage, session, "yes")
    stage.claim(session)
    assert stage.get(Event, session, stored.seq).processed_at is not None
    assert say("yes") in stage.history(session)[0]["content"]


def test_a_key_that_may_not_decide_does_not_decide_by_a_word_either(stage: Stage, clock: Any) -> None:
    session, calls = waiting(stage, clock, "ls")
    runner = Principal("api_key", "key_runner", stage.workspace_id, frozenset({"sessions"}))
    event = {"type": "user.message", "content": [say("yes")]}
    stage.locked(session, lambda db, held: flow.receive(db, held, runner, [event]))
    assert statuses(stage, calls) == ["asked"]
    assert "may not decide" in stage.events(session, "agent.message")[-1].body["content"][0]["text"]


def test_an_unknown_event_cannot_have_been_seen(stage: Stage, clock: Any) -> None:
    session, calls = waiting(stage, clock, "ls")
    with pytest.raises(Invalid, match="seen"):
        tell(stage, session, "yes", seen="sevt_none")
    assert statuses(stage, calls) == ["asked"]


def test_after_approve_all_the_last_event_says_that_the_client_s_call_is_waited_for(stage: Stage, clock: Any) -> None:
    """Runners expect the idle event last, behind the message about the grants."""
    session = stage.session(custom=("pay?",), chat_approvals=True)
    tool_call = stage.propose(session, call("pay", n=1))
    tell(stage, session, "approve all", seen=last_shown(stage, session))
    assert [event.type for event in stage.events(session)[-2:]] == ["agent.message", "session.status_idle"]
    assert stage.events(session)[-1].body["stop_reason"]["event_ids"] == [tool_call.id]


def test_no_to_several_that_were_seen_denies_them_all(stage: Stage, clock: Any) -> None:
    session, calls = waiting(stage, clock, "ls", "pwd")
    tell(stage, session, "no", seen=last_shown(stage, session))
    assert statuses(stage, calls) == ["denied", "denied"]


def test_an_event_of_another_session_cannot_have_been_seen_here(stage: Stage, clock: Any) -> None:
    """Its number may be higher than that of any question here."""
    session, calls = waiting(stage, clock, "ls")
    other, _ = waiting(stage, clock, "pwd")
    with pytest.raises(Invalid, match="seen"):
        tell(stage, session, "yes", seen=last_shown(stage, other))
    assert statuses(stage, calls) == ["asked"]


def test_seeing_the_approval_s_event_is_enough_where_the_call_s_is_withheld(stage: Stage, clock: Any) -> None:
    session = stage.session(custom=("pay?",), chat_approvals=True)
    stage.message(session)
    calls = stage.reply(session, call("pay", n=1))
    tell(stage, session, "yes", seen=stage.events(session, "approval.requested")[0].id)
    assert statuses(stage, calls) == ["with_client"]


@pytest.mark.parametrize("event", ["decided", "settled", "elsewhere"])
def test_a_word_just_after_another_call_was_decided_or_ended_is_asked_back(stage: Stage, clock: Any, event: str) -> None:
    """Its writer may have meant the other call. Events of another session do not count."""
    session, [first, second] = waiting(stage, clock, "ls", "pwd")
    stage.confirm(session, first.id)
    if event != "decided":
        held = stage.begin_call(first)
        clock.advance(11)
        stage.finish_call(held)
    if event == "elsewhere":
        clock.advance(11)
        other = stage.session(chat_approvals=True)
        stage.message(other)
        stage.reply(other, call())
    tell(stage, session, "yes")
    assert statuses(stage, [second]) == ["queued" if event == "elsewhere" else "asked"]


def test_no_word_settles_an_unknown_outcome(stage: Stage, clock: Any) -> None:
    session = stage.session(chat_approvals=True, bash="always_allow")
    tool_call = stage.propose(session)
    stage.lose(stage.begin_call(tool_call), clock)
    clock.advance(60)
    assert tell(stage, session, "yes").processed_at is None
    assert stage.approvals(session)[0].status == "pending"


def test_a_word_beside_another_text_is_a_message(stage: Stage, clock: Any) -> None:
    session, calls = waiting(stage, clock, "ls")
    [stored] = stage.send(session, {"type": "user.message", "content": [say("yes"), say("but hurry")]})
    assert stored.processed_at is None
    assert statuses(stage, calls) == ["asked"]
