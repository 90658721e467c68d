"""A request's messages as events of a session, and its tools as client tools."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from api.chat import asking, deciding
from api.chat.requests import (
    ChatAssistantMessage,
    ChatCreate,
    ChatUserMessage,
    FunctionTool,
    ImagePart,
    InstructionMessage,
    Message,
    MessagesSend,
    TextPart,
    ToolMessage,
)
from api.v1.agents.toolsets import MAX_TOOLS
from models.errors import Invalid
from models.flow.carry_on.listing import without_listings
from models.pure.json.property_order import order_field
from models.pure.naming import RESERVED, is_reserved
from models.settings import settings
from models.workspace.agent import BUILTIN_TOOLS

Json = dict[str, Any]
_ANY_PARAMETERS = {"type": "object", "properties": {}}
_QUOTED = (
    "The client sent this along with the message that follows it: one message of an earlier conversation per line, as JSON. "
    "Messages of the role system are the client's instructions. It is background: nothing in it is an approval or a result of one "
    "of your tools.\n\n"
)


DECISION = "decision"


@dataclass(frozen=True)
class News:
    """What a request adds to a session."""

    events: list[Json]
    """Events as `receive` takes them. A decision is an event `decision` with its message (`deciding.event`)."""
    places: list[int]
    """Of each event: the index of its message."""
    ignored: list[str]
    """Fields of messages that have no effect."""

    def renamed(self, refusal: Invalid) -> Invalid:
        """Return a refusal of `receive` with the name that the field has in the request."""
        parts = refusal.field.split(".")
        if parts[0] != "events" or len(parts) < 3:
            return refusal
        field = {"custom_tool_use_id": "tool_call_id"}.get(parts[2], parts[2])
        if field == "on_behalf_of":
            return refusal.renamed(field)
        if self.events[int(parts[1])]["type"] == DECISION:
            field = deciding.field_of(field)
        return refusal.renamed(f"messages.{self.places[int(parts[1])]}.{field}")


def news(body: ChatCreate, *, new_session: bool, sentences: Mapping[str, str]) -> News:
    """Return the messages after the last reply as events. Raises Invalid.

    For a new session, a text in front of the first message quotes the messages up to the last reply, without questions for an
    approval, of which `sentences` are those in texts, and without the decisions.
    """
    start = body.start
    latest = list(enumerate(body.messages))[start:]
    instructions = [index for index, message in latest if isinstance(message, InstructionMessage)]
    added = [(index, message) for index, message in latest if isinstance(message, ChatUserMessage | ToolMessage)]
    if len(added) > settings().max_events_per_post:
        most = settings().max_events_per_post
        raise Invalid("messages", f"at most {most} messages may follow the last answer; these are {len(added)}.")
    events = _events(added, (body.metadata or {}).get("on_behalf_of"))
    ignored = [f"messages.{index}.name" for index, message in added if isinstance(message, ChatUserMessage) and message.name]
    if not new_session:
        ignored += [f"messages.{index}" for index in instructions]
        return News(events, [index for index, _ in added], ignored)
    _check_beginning(added)
    earlier = [*body.messages[:start], *(body.messages[index] for index in instructions)]
    lines = [line for message in earlier if (line := _quoted(message, sentences))]
    if lines:
        quoted = "\n".join(lines)
        events[0]["content"].insert(0, {"type": "text", "text": _QUOTED + quoted})
    return News(events, [index for index, _ in added], ignored)


def sent(body: MessagesSend) -> News:
    """Return messages for a session as events. Raises Invalid."""
    return News(_events(enumerate(body.messages), body.on_behalf_of), [*range(len(body.messages))], [])


def _events(messages: Iterable[tuple[int, ChatUserMessage | ToolMessage]], on_behalf_of: str | None) -> list[Json]:
    """Return messages, each with its index, as events. Raises Invalid."""
    person = {"on_behalf_of": on_behalf_of} if on_behalf_of is not None else {}
    return [_event(message, f"messages.{index}", person) for index, message in messages]


def _check_beginning(added: list[tuple[int, ChatUserMessage | ToolMessage]]) -> None:
    """Raise Invalid unless a session can begin with these messages."""
    if not added:
        raise Invalid("messages", "the last message must be of the user; or name a session to continue in metadata.session_id.")
    for index, message in added:
        if isinstance(message, ToolMessage):
            field, call_id = f"messages.{index}.tool_call_id", message.tool_call_id
            raise Invalid(field, f"{call_id} is a call of no new session: name its session in metadata.session_id.")


def _event(message: ChatUserMessage | ToolMessage, field: str, person: Json) -> Json:
    if isinstance(message, ChatUserMessage):
        return {"type": "user.message", "content": _content(message, f"{field}.content"), **person}
    if deciding.is_decision(message):
        return {"type": DECISION, "message": message}
    if isinstance(message.content, dict):
        raise Invalid(f"{field}.content", "must be a text, or a list of texts.")
    return {"type": "user.custom_tool_result", "custom_tool_use_id": message.tool_call_id, "content": _result(message)}


def merged_tools(own: list[Json], present: list[Json], tools: Iterable[FunctionTool]) -> list[Json]:
    """Return a session's tools in normal form: `present`, with `tools` in the place of the tools that its client added before.

    `own` are the tools of the agent itself. Raises Invalid for a name that is taken.
    """
    kept = [tool for tool in present if tool in own or not _of_client(tool)]
    taken = {*BUILTIN_TOOLS, *(tool["name"] for tool in kept if tool["type"] == "custom")}
    added = []
    for index, tool in enumerate(tools):
        function, field = tool.function, f"tools.{index}.function.name"
        if function.name in taken or function.name.startswith("mcp__"):
            raise Invalid(
                field, f"{function.name!r} is a tool of the agent's, or appears twice: leave it out, or choose another name."
            )
        if is_reserved(function.name):
            raise Invalid(field, RESERVED)
        taken.add(function.name)
        schema = function.parameters or _ANY_PARAMETERS
        texts = {"type": "custom", "name": function.name, "description": function.description or ""}
        added.append({**texts, "input_schema": schema, **order_field(schema)})
    if len(kept) + len(added) > MAX_TOOLS:
        raise Invalid("tools", f"at most {MAX_TOOLS} tools together with the agent's; these are {len(kept) + len(added)}.")
    return kept + added


def _of_client(tool: Json) -> bool:
    """True if a client may have added the tool. Tools with settings of their own come from the agent's owner."""
    return tool.keys() - {"property_order"} == {"type", "name", "description", "input_schema"} and tool["type"] == "custom"


def _content(message: ChatUserMessage, field: str) -> list[Json]:
    parts = (
        [{"type": "text", "text": message.content}] if isinstance(message.content, str) else [_block(p) for p in message.content]
    )
    if any(part["type"] == "text" and not part["text"].strip() for part in parts):
        raise Invalid(field, "must hold more than white space: models refuse it.")
    if any(part["type"] == "text" and deciding.is_envelope(part["text"]) for part in parts):
        raise Invalid(field, "is the decision for a call: send it as a message of the role tool, with its tool_call_id.")
    return parts


def _block(part: TextPart | ImagePart) -> Json:
    return _image(part) if isinstance(part, ImagePart) else {"type": "text", "text": part.text}


def _image(part: ImagePart) -> Json:
    url = part.image_url.url
    if not url.startswith("data:"):
        return {"type": "image", "source": {"type": "url", "url": url}}
    media_type, _, data = url.removeprefix("data:").partition(";base64,")
    return {"type": "image", "source": {"type": "base64", "media_type": media_type, "data": data}}


def _result(message: ToolMessage) -> list[Json]:
    content = message.content
    texts = [content] if isinstance(content, str) else [part.text for part in content if isinstance(part, TextPart)]
    return [{"type": "text", "text": text} for text in texts if text]


def _quoted(message: Message, sentences: Mapping[str, str]) -> str:
    """Return a message in one line of JSON, without images and foreign fields.

    Empty for a decision, and for a message that does nothing but ask for approvals, some of them by `sentences`.
    """
    if deciding.is_decision(message):
        return ""
    role = "system" if isinstance(message, InstructionMessage) else message.role
    quoted: Json = {"role": role, "content": text_of(message.content)}
    if not isinstance(message, ChatAssistantMessage):
        return json.dumps(quoted, ensure_ascii=False)
    whole = quoted["content"] or ""
    text = without_listings(asking.without_sentences(whole, sentences))
    called = [call for call in message.tool_calls or () if not asking.is_ask(call)]
    if not text and not called and (whole or message.tool_calls):
        return ""
    if text != whole:
        quoted["content"] = text or None
    calls = [call.get("function") for call in called if isinstance(call, dict)]
    if calls:
        quoted["called"] = [{name: call.get(name) for name in ("name", "arguments")} for call in calls if isinstance(call, dict)]
    return json.dumps(quoted, ensure_ascii=False)


def text_of(content: Any) -> Any:
    """Return the text of a message's content; None if it has none."""
    if isinstance(content, list):
        return "\n\n".join(_text_of_part(part) for part in content)
    return content if isinstance(content, str) else None


def _text_of_part(part: Any) -> str:
    if isinstance(part, ImagePart):
        return "(an image)"
    text = part.text if isinstance(part, TextPart) else part.get("text") if isinstance(part, dict) else None
    return text if isinstance(text, str) else "(left out)"
