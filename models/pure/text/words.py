"""The texts that the model, and sometimes a person, reads after each outcome. They stand in one place, so that a test can check
that none invites a retry."""

from collections.abc import Sequence

from models.pure.text.visible import visible

_ELSE = "Do not repeat it; take another way, or ask the user what they want."
_LEADS = " (a symbolic link leads to: "
_MAYBE = "it may or may not have taken effect. Do not repeat it."
SESSION_DIRECTORY = "the session's directory"
"""The directory of a session's files, in which its first shell command starts."""


def denied_by_person(message: str | None) -> str:
    """A person denied the call."""
    if message:
        return f"The user denied this tool call and said: {message}\nIt was not run. {_ELSE}"
    return f"The user denied this tool call. It was not run. {_ELSE}"


def denied_by_policy(rule: str) -> str:
    """A rule denied the call."""
    return f"This tool call is not permitted here ({rule}). It was not run. Do not repeat it; take another way."


def unasked(rule: str) -> str:
    """The rule of a call that was denied because the session's client cannot approve."""
    return f"{rule}; the session denies what would be asked (on_ask)"


def cannot_approve() -> str:
    """A rule asks, and the session says that its client cannot approve."""
    return (
        "This tool call needs a person's approval, and nobody can approve calls in this session. It was not run. "
        "Do not repeat it; take another way, or end and say what needs approval."
    )


def cannot_answer() -> str:
    """A tool asked back, and the session says that its client cannot answer."""
    return (
        "This tool call asked the user something before it could go on, and nobody can answer in this session. It was not carried "
        "through. Do not repeat it; take another way, or end and say what is needed."
    )


def expired(seconds: float) -> str:
    """Nobody answered before the deadline."""
    return (
        f"Nobody approved or denied this tool call within {_duration(seconds)}, so it was not run. This is not a refusal: "
        "nobody was there. Do not repeat it now; go on without it, or end and say what needs approval."
    )


def expired_note(seconds: float) -> str:
    """The short form of `expired`, for the stored confirmation."""
    return f"Expired: nobody decided within {_duration(seconds)}."


def client_silent(seconds: float) -> str:
    """The client that runs the tool gave no result."""
    return f"The program that runs this tool gave no result within {_duration(seconds)}: {_MAYBE}"


def ended_by_person(message: str | None) -> str:
    """A person denied the call and ended the run."""
    return f"The user denied this tool call and ended the run{f', saying: {message}' if message else ''}. It was not run."


def edited(input_text: str) -> str:
    """A person edited the input before the call ran. Stands before the call's result."""
    return (
        f"The user changed the input of this tool call before it ran, to: {input_text}\n"
        "That was done on purpose, and this is the result. Go on from it; do not repeat the call with the input that you proposed."
    )


def replaced() -> str:
    """For the client's own runner, which drops a call whose input was edited. The model never reads this."""
    return "A person changed the input of this tool call. It was not run; another one takes its place."


def answered_by_person() -> str:
    """A person answered in the tool's place. Stands before the answer."""
    return "The user answered this tool call in the tool's place; the tool was not run. Take it as the result:"


def asks_back(tool: str, server: str | None) -> str:
    """For people: a tool asks a question before it goes on."""
    return f"{f'{server}: ' if server else ''}{tool} asks before it goes on"


def tool_changed(prompt: str) -> str:
    """For people: the call is asked again, because the tool's schema has changed and the input no longer fits."""
    note = " (the tool has changed since this was asked: its input no longer fits; edit it or deny)"
    return prompt.removesuffix(note) + note


def leads_to(prompt: str, places: list[str]) -> str:
    """For people: the places to which a call's paths lead by symbolic links."""
    start = prompt.partition(_LEADS)[0]
    return start + (_LEADS + ", ".join(map(visible, places)) + ")" if places else "")


def question_denied(message: str | None) -> str:
    """A tool asked back, and a person declined to answer."""
    reason = f" and said: {message}\n" if message else ". "
    return f"The user would not answer what this tool call asked before it could go on{reason}It was not carried through. {_ELSE}"


def question_expired(seconds: float) -> str:
    """A tool asked back, and nobody answered."""
    return (
        f"This tool call asked the user something before it could go on, and nobody answered within {_duration(seconds)}, so it "
        "was not carried through. This is not a refusal: nobody was available. Do not repeat it now; go on without it, or "
        "say what is needed."
    )


def cancelled_asking() -> str:
    """The run ended while a tool's question was open."""
    return "This tool call asked the user something before it could go on, and the run was ended first: it was not carried through."


def cancelled() -> str:
    """The run ended before the call started."""
    return "This tool call was not run: the run was ended before it started."


def one_at_a_time() -> str:
    """The end of the system prompt of an agent that calls one tool at a time."""
    return "Call one tool at a time: wait for its result before you call the next one."


def message_from(agent_name: str | None, thread_id: str) -> str:
    """Stands before a message of another thread. Without a name the message is from the coordinator."""
    sender = f"sub-agent {visible(agent_name)}" if agent_name else "the agent that gave you this task"
    return f"Message from {sender} (session_thread_id {thread_id}), not from a user:"


def no_text() -> str:
    """In place of a sub-agent's last text."""
    return "(The sub-agent wrote no text.)"


def ended_early(why: str) -> str:
    """Stands before the last text of a sub-agent whose run did not end by itself."""
    return f"The sub-agent's run ended early: {why}"


def ended_by_somebody(message: str | None) -> str:
    """A person, a deadline or a client ended the run of a sub-agent."""
    return f"it was ended: {message}" if message else "somebody ended it."


def refused_by_model() -> str:
    """The model of a sub-agent declined."""
    return "the model refused to go on."


def cap_reached() -> str:
    """The budget of the session, or a spend limit, is reached."""
    return "the session's budget or a spend limit is reached."


def retries_exhausted() -> str:
    """A sub-agent's model did not answer."""
    return "its model failed too often."


def sent_to_agent(name: str, thread_id: str) -> str:
    """A sub-agent has got a message."""
    return (
        f"Sent to {visible(name)} (session_thread_id {thread_id}). Its report comes to you as a message: go on with other "
        "work, or end your turn."
    )


def turn_limit(limit: int) -> str:
    """The last turn that the limit allows called tools."""
    return f"Not run: turn limit. The run reached its limit of {limit} turns for one message."


def unknown_tool(name: str) -> str:
    """The model called a tool that its agent does not have."""
    return f"There is no tool named {name!r} here. It was not run. Use one of the tools that you were given."


def invalid_input(problem: str) -> str:
    """The input does not fit the tool's schema."""
    return f"The input does not fit the tool's schema, so it was not run. {problem}"


def changed_input() -> str:
    """The stored input differs from the one that was decided."""
    return "This tool call was stopped: its input is not the one that was approved. It was not run."


def outcome_unknown() -> str:
    """The call began, and its end was never reported."""
    return f"This tool call was started and its end was never reported, so its outcome is unknown: {_MAYBE}"


def given_up(message: str | None) -> str:
    """A person gave up on finding out a call's outcome."""
    note = f" The user said: {message}" if message else ""
    return f"This tool call was started, and its outcome could not be found out: {_MAYBE}{note}"


def lost(attempts: int) -> str:
    """A call whose worker died every time."""
    return f"This tool call failed: its worker was lost {attempts} times while running it. Do not repeat it."


def left_out(kind: str) -> str:
    """A part of a result that the model's API did not accept."""
    return f"({kind} left out: the model could not accept it)"


def unreadable_turn() -> str:
    """A turn whose rows no code can read."""
    return "(A part of this conversation could not be read and is left out.)"


def left_out_when_old(characters: int, kinds: Sequence[str]) -> str:
    """The rest of an old result, when the history became too long for the model: text, and blocks of other kinds."""
    others = f"{len(kinds)} blocks of other kinds ({', '.join(sorted(set(kinds)))})" if kinds else ""
    rest = " and ".join(filter(None, [f"{characters} more characters" if characters else "", others]))
    return f"({rest} left out: the result is old, and the conversation is long)"


def summary(text: str) -> str:
    """A summary in place of old turns, for a model whose provider has no form of its own for summaries."""
    return f"The beginning of this conversation was replaced by a summary:\n\n{text}\n\nGo on from it. What follows is unchanged."


def summarize() -> str:
    """The request for a summary, as the last message."""
    return (
        "Write a summary of the conversation so far. It will replace the conversation: later replies see only the summary. "
        "Keep the user's requests and rules, decisions, results, names, paths and numbers that later work needs, what is done, and "
        "what is still to do. Reply with the summary alone. Do not call tools, and do not continue the work."
    )


def folded_too_often(times: int) -> str:
    """A conversation is still too long for its model."""
    return f"The conversation was summarized {times} times in a row and is still too long for the model's context window."


def too_long(error: str) -> str:
    """The model refused a request as too long, also after older turns were folded, or refused the request for their summary."""
    return (
        f"{error}. Older turns could not make it short enough. Send less at once, or set the model's `windows` in ASSENT_PROVIDERS."
    )


def broken_input(fault: str) -> str:
    """The input of a call was not JSON."""
    return (
        f"The input of this tool call is not a JSON object ({fault}), so it was not run. Send the call once more, with valid JSON."
    )


def broken_twice() -> str:
    """The model was told that the input of a call is not JSON, and the next reply had such a call again."""
    return "The model sent a tool call whose input is not JSON twice in a row, so the run ends."


def not_run_beside_broken() -> str:
    """A readable call beside one that was broken a second time."""
    return "This tool call was not run: the run ended, because another call of the same reply could not be read."


def failed_silently() -> str:
    """An error without a message. The model's API refuses an empty text."""
    return "This tool call failed and gave no message."


def stopped(reason: str) -> str:
    """A call that failed for a reason outside its tool."""
    return f"This tool call failed: {reason}"


def call_given_up(why: str) -> str:
    """No worker could begin the call."""
    return f"This tool call was not run, because it could not be begun: {why}. {_ELSE}"


def turn_given_up(why: str) -> str:
    """For the session's readers: no worker could begin the turn."""
    return (
        f"The turn could not go on: {why}. It is not tried again, and the conversation goes on without its messages: "
        "send them again if they still matter."
    )


def run_given_up(why: str) -> str:
    """For the session's readers: a turn or a call could neither be begun nor be ended alone."""
    return f"The run could not go on: {why}. It was ended."


def _duration(seconds: float) -> str:
    for unit, size in (("day", 86_400), ("hour", 3600), ("minute", 60)):
        if seconds >= size and seconds % size == 0:
            n = int(seconds // size)
            return f"{n} {unit}{'s' if n > 1 else ''}"
    return f"{seconds:g} seconds"
