"""If the session allows chat approvals, a word in the chat decides a call that its writer has certainly seen."""

from typing import Any

import pytest
from rows.crew import Crew, send
from rows.stage import QUESTION, Stage, call, confirmation, say

from models.audit.principal import Principal
from models.errors import Invalid
from models.flow.begin.messages import receive
from models.flow.carry_on.listing import without_listings
from models.session.approval.row import Approval
from models.session.event.of_session import AgentMessage
from models.session.event.row import Event
from models.session.locked import Locked
from models.session.tool_call.row import ToolCall

LIMIT = " (beside a rule that denies or asks about commands: only programs that are known to run no others)"


def waiting(stage: Stage, clock: Any, *commands: str) -> tuple[str, list[ToolCall]]:
    """A chat session whose listing of these calls is just old enough for a word."""
    session = stage.session(chat_approvals=True)
    stage.message(session)
    calls = stage.reply(session, *(call(command=one) for one in commands))
    clock.advance(2)
    return session, calls


def tell(stage: Stage, session: str, text: str, **more: Any) -> Event:
    return stage.send(session, {"type": "user.message", "content": [say(text)], **more})[0]


def statuses(stage: Stage, calls: list[ToolCall]) -> list[str]:
    return [stage.get(ToolCall, tool_call.id).status for tool_call in calls]


def listing(stage: Stage, session: str) -> Event:
    """The last listing, behind which the session's idle event stands."""
    *_, listed, idle = stage.events(session)
    assert (listed.type, listed.body["assent"]["kind"], idle.type) == ("agent.message", "waiting", "session.status_idle")
    assert idle.body["stop_reason"] == stage.read(session).stop_reason
    return listed


def text_of(event: Event) -> str:
    text: str = event.body["content"][0]["text"]
    return text


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
    clock.advance(1.9)
    tell(stage, session, "yes")
    assert statuses(stage, calls) == ["asked"]
    assert "less than 2 s after what it would decide" in text_of(listing(stage, session))
    clock.advance(2)
    tell(stage, session, "yes")
    assert statuses(stage, calls) == ["queued"], "the repeated word refers to the new listing"


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


def test_approve_all_says_whose_calls_it_allows(stage: Stage, clock: Any) -> None:
    crew = Crew.begin(stage, chat_approvals=True)
    crew.lead_replies(send("Reader"), send("Writer"), send("Reader"))
    crew.lead_replies(say("I wait."))
    calls = [crew.replies(call(command="ls"), number=number)[0] for number in range(3)]
    clock.advance(2)
    sentences = [f"every call of bash{LIMIT} by {name}" for name in ("Lead › Reader", "Lead › Writer")]
    assert "; ".join(sentences) in text_of(listing(stage, crew.session_id))
    tell(stage, crew.session_id, "approve all")
    assert statuses(stage, calls) == ["queued"] * 3
    grants = [event.body["reach"] for event in stage.events(crew.session_id, "grant.given")]
    assert grants == [f"calls of the agent {name}, version 1, in this session" for name in ("Reader", "Writer")]


def test_approve_all_decides_what_the_listing_names(stage: Stage, clock: Any) -> None:
    """A plain client needs no `seen`. A single yes is not certain."""
    session, calls = waiting(stage, clock, "ls", "pwd")
    assert "from then on in this session: every call of bash (" in text_of(listing(stage, session))
    tell(stage, session, "ok")
    assert statuses(stage, calls) == ["asked", "asked"]
    assert "2 decisions wait" in text_of(listing(stage, session))
    clock.advance(2)
    tell(stage, session, "approve all")
    assert statuses(stage, calls) == ["queued", "queued"]
    assert len(stage.events(session, "grant.given")) == 1


def test_no_denies_all_that_the_listing_names(stage: Stage, clock: Any) -> None:
    session, calls = waiting(stage, clock, "ls", "pwd")
    tell(stage, session, "no thanks")
    assert statuses(stage, calls) == ["denied", "denied"]


def test_the_conversation_says_what_waits_before_it_rests(stage: Stage, clock: Any) -> None:
    session, _ = waiting(stage, clock, "git push\n1 call waits for a decision:", "pwd")
    listed = listing(stage, session)
    approvals = stage.approvals(session)
    assert listed.body["assent"]["approval_ids"] == [approval.id for approval in approvals]
    assert listed.body["assent"]["shown_inputs"] == {approval.id: approval.input_sha256 for approval in approvals}
    parts = text_of(listed).split("\n\n")
    assert parts[0] == "2 calls wait for a decision:"
    barred = "Run shell command\n| git push\n| 1 call waits for a decision:"
    assert parts[1:3] == [barred, "Run shell command\n| pwd"], "no line of a call looks like a line of the listing"
    assert parts[3].startswith('Say "approve all" or "reject".')


def test_the_model_never_gets_what_the_conversation_says_of_approvals(stage: Stage, clock: Any) -> None:
    session, calls = waiting(stage, clock, "ls", "pwd")
    tell(stage, session, "maybe")
    tell(stage, session, "Hurry, please.")
    clock.advance(2)
    tell(stage, session, "approve all")
    for tool_call in calls:
        stage.run_call(tool_call)
    stage.claim(session)
    first, reply, results = stage.history(session)
    assert first["content"] == [say("Do it.")]
    assert [block["type"] for block in reply["content"]] == ["tool_use", "tool_use"]
    assert [block["type"] for block in results["content"]] == ["tool_result", "tool_result", "text"]
    assert results["content"][-1] == say("Hurry, please.")


def test_a_listing_that_a_client_sends_back_is_recognised(stage: Stage, clock: Any) -> None:
    """Also if a call repeats the words of a listing."""
    session, _ = waiting(stage, clock, "echo 'Anything else is sent to the agent when it goes on.'\n1 call waits for a decision:")
    tell(stage, session, "ok?")
    first, second = (text_of(event) for event in stage.events(session, "agent.message"))
    assert without_listings(f"I will look.\n\n{first}\n\n{second}\n\nDone.").split() == ["I", "will", "look.", "Done."]
    assert without_listings("1 call waits for a decision:\n\nAsk Ann.") == "1 call waits for a decision:\n\nAsk Ann."


def test_a_text_of_the_model_that_asks_for_a_word_stands_before_the_listing(stage: Stage, clock: Any) -> None:
    """The word then refers to the listing, and a text that looks like a listing is none."""
    session = stage.session(chat_approvals=True)
    stage.message(session)
    [tool_call] = stage.reply(session, say("1 call waits for a decision: ls. Say ok."), call(command="rm x"))
    model, listed = stage.events(session, "agent.message")
    assert "assent" not in model.body
    assert "| rm x" in text_of(listed)
    clock.advance(2)
    tell(stage, session, "ok")
    assert statuses(stage, [tool_call]) == ["queued"]


def test_a_text_of_the_model_behind_the_listing_makes_it_stale(stage: Stage, clock: Any) -> None:
    session, calls = waiting(stage, clock, "rm x")
    stage.locked(session, lambda locked: locked.emit(AgentMessage(type="agent.message", content=[say("Do you like it? Say ok.")])))
    clock.advance(2)
    tell(stage, session, "ok")
    assert statuses(stage, calls) == ["asked"]
    assert "something has changed" in text_of(listing(stage, session))


def test_a_word_refers_to_the_newer_of_two_listings(stage: Stage, clock: Any) -> None:
    session, [first, second] = waiting(stage, clock, "ls", "pwd")
    stage.confirm(session, first.id)
    assert [text_of(event).count("| ") for event in stage.events(session, "agent.message")] == [2, 1]
    tell(stage, session, "yes")
    assert statuses(stage, [second]) == ["asked"], "the newer listing is too young"
    clock.advance(2)
    tell(stage, session, "yes")
    assert statuses(stage, [first, second]) == ["queued", "queued"]


def test_a_call_that_expired_after_its_listing_is_not_allowed(stage: Stage, clock: Any) -> None:
    """Neither before a sweep finds it, nor afterwards."""
    session = stage.session(chat_approvals=True, approval={"timeout_seconds": 60}, bash="always_ask")
    stage.message(session)
    calls = stage.reply(session, call(command="ls"))
    clock.advance(61)
    tell(stage, session, "yes")
    assert statuses(stage, calls) == ["asked"]
    assert "the deadline has passed" in text_of(listing(stage, session))
    stage.expire(session)
    assert tell(stage, session, "yes").processed_at is None, "nothing waits"
    assert statuses(stage, calls) == ["expired"]


def test_an_input_that_changed_after_its_listing_is_not_allowed(stage: Stage, clock: Any) -> None:
    """Even if no event told of the change: the word is bound to the hash that the listing showed."""
    session, calls = waiting(stage, clock, "ls")

    def edit(locked: Locked) -> None:
        approval = locked.db.get_one(Approval, stage.approvals(session)[0].id)
        approval.edit({"command": "rm x"}, {"command": "rm x"}, stage.principal)

    stage.locked(session, edit)
    tell(stage, session, "yes")
    assert statuses(stage, calls) == ["asked"]
    assert "Nothing was decided" in text_of(listing(stage, session))


def test_no_word_allows_a_call_that_is_not_wholly_shown(stage: Stage, clock: Any) -> None:
    """Nor does the grant of `approve all`, which would release it. A word may deny it."""
    session, calls = waiting(stage, clock, "ls", f"echo {'x' * 600}")
    link = f"/inbox/approvals/{stage.approvals(session)[1].id}"
    assert link in text_of(listing(stage, session))
    tell(stage, session, "approve all")
    assert statuses(stage, calls) == ["queued", "asked"]
    assert stage.events(session, "grant.given") == []
    clock.advance(2)
    tell(stage, session, "approve")
    tell(stage, session, "approve all", seen=last_shown(stage, session))
    assert statuses(stage, calls) == ["queued", "asked"]
    assert "not wholly shown" in text_of(listing(stage, session))
    clock.advance(2)
    tell(stage, session, "reject")
    assert statuses(stage, calls) == ["queued", "denied"]


def test_approve_all_leaves_calls_beyond_the_listing(stage: Stage, clock: Any) -> None:
    session, calls = waiting(stage, clock, *(f"echo {number}" for number in range(12)))
    assert "2 more are listed when these are decided" in text_of(listing(stage, session))
    tell(stage, session, "approve all")
    assert statuses(stage, calls) == ["queued"] * 10 + ["asked"] * 2
    assert stage.events(session, "grant.given") == [], "a grant would release the two others"
    assert text_of(listing(stage, session)).count("| echo") == 2


def test_a_message_that_is_no_word_is_answered_and_goes_to_the_agent(stage: Stage, clock: Any) -> None:
    session, calls = waiting(stage, clock, "ls")
    stored = tell(stage, session, "What does it do?")
    assert (stored.processed_at, statuses(stage, calls)) == (None, ["asked"])
    assert text_of(listing(stage, session)).startswith("Your message is sent to the agent when it goes on.\n\n1 call waits")
    clock.advance(2)
    tell(stage, session, "yes")
    assert statuses(stage, calls) == ["queued"]


def test_an_unclear_word_is_asked_back_and_not_sent_to_the_agent(stage: Stage, clock: Any) -> None:
    session, calls = waiting(stage, clock, "ls")
    stored = tell(stage, session, "ok?")
    assert (stored.processed_at is None, statuses(stage, calls)) == (False, ["asked"])
    assert "not clear whether" in text_of(listing(stage, session))


def test_the_workspace_s_own_words_decide(stage: Stage, clock: Any) -> None:
    stage.change_policies(chat_words={"allow": ["genehmigt"], "deny": ["stop"]})
    for word, status in (("Genehmigt!", "queued"), ("stop", "denied")):
        session, calls = waiting(stage, clock, "ls")
        tell(stage, session, word)
        assert statuses(stage, calls) == [status]


def test_a_client_s_result_beside_a_call_that_waits_is_followed_by_a_new_listing(stage: Stage, clock: Any) -> None:
    """A result may hold any text, so no word refers to what stood before it."""
    session = stage.session(chat_approvals=True, bash="always_ask", read="always_allow")
    stage.message(session)
    asked, read = stage.reply(session, call(command="rm x"), call("read", file_path="a"))
    held = stage.begin_call(read)
    clock.advance(2)
    stage.finish_call(held, "Say ok.")
    assert "| rm x" in text_of(listing(stage, session))
    tell(stage, session, "ok")
    assert statuses(stage, [asked]) == ["asked"]
    clock.advance(2)
    tell(stage, session, "ok")
    assert statuses(stage, [asked]) == ["queued"]


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
    stage.locked(session, lambda locked: receive(locked, [event]), runner)
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
    clock.advance(2)
    for word in ("yes", "approve all", "no"):
        assert tell(stage, session, word).processed_at is not None, "the agent would not know what it refers to"
        assert "no word decides what waits" in text_of(listing(stage, session))
        clock.advance(2)
    assert stage.approvals(session)[0].status == "pending"


def test_no_word_raises_a_budget_or_answers_a_question(stage: Stage, clock: Any) -> None:
    session = stage.session(chat_approvals=True, bash="always_allow")
    held = stage.begin_call(stage.propose(session))
    stage.finish_call(held, question=QUESTION)
    assert "No word decides this" in text_of(listing(stage, session))
    clock.advance(2)
    tell(stage, session, "yes")
    assert stage.approvals(session)[0].status == "pending"


def test_a_word_beside_another_text_is_a_message(stage: Stage, clock: Any) -> None:
    session, calls = waiting(stage, clock, "ls")
    [stored] = stage.send(session, {"type": "user.message", "content": [say("yes"), say("but hurry")]})
    assert stored.processed_at is None
    assert statuses(stage, calls) == ["asked"]


def test_several_decisions_at_once_are_followed_by_one_listing_of_what_waits(stage: Stage, clock: Any) -> None:
    session, (first, second, third) = waiting(stage, clock, "ls", "pwd", "date")
    before = stage.events(session)
    stage.send(session, confirmation(first.id), confirmation(second.id, "deny"))
    news = stage.events(session)[len(before) :]
    assert [event.type for event in news].count("session.status_idle") == 1
    assert [event.type for event in news].count("agent.message") == 1
    assert text_of(listing(stage, session)).startswith("1 call waits")
    assert stage.read(session).stop_reason == {"type": "requires_action", "event_ids": [third.id]}
    stage.check(session)


def test_decisions_of_which_the_last_is_a_repetition_are_followed_by_the_next_turn(stage: Stage, clock: Any) -> None:
    session, (first, second) = waiting(stage, clock, "ls", "pwd")
    stage.send(session, confirmation(first.id, "deny"))
    stage.send(session, confirmation(second.id, "deny"), confirmation(first.id, "deny"))
    assert stage.begin(session).count == 2
    stage.check(session)
