"""Chat Completions as clients send them."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    StringConstraints,
    WithJsonSchema,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema
from pydantic_core.core_schema import no_info_after_validator_function

from api.door.examples import IDS
from api.door.requests import AtMost, Body, IdPaged, MetadataKey, MetadataValue, Paged, PersonName, examples, one_of
from api.v1.agents.schemas import InputSchema

MODEL = "assent/"
"""A model's name is this and the id of an agent."""

ASK_ID = f"{IDS['approval_id']}_{'5f' * 32}"
"""An example of the id of a call that asks for an approval."""

Texts = Annotated[str, StringConstraints(min_length=1)]


class TextPart(Body):
    """A text."""

    type: Literal["text"]
    text: Texts


class ImageUrl(Body):
    """An image's address, or the image itself as a data URL."""

    url: Annotated[
        str,
        StringConstraints(min_length=1, pattern=r"^(https://\S{1,4088}|data:image/(png|jpeg|gif|webp);base64,[A-Za-z0-9+/]+=*)$"),
    ]
    detail: Literal["auto", "low", "high", "original"] | None = None


class ImagePart(Body):
    """An image."""

    type: Literal["image_url"]
    image_url: ImageUrl


Part = Annotated[TextPart | ImagePart, Field(discriminator="type")]
TextContent = str | Annotated[list[TextPart], Field(min_length=1, max_length=100)]


class InstructionMessage(Body):
    """Instructions of the client for a new session."""

    role: Literal["system", "developer"]
    content: TextContent
    name: str | None = None


class ChatUserMessage(Body):
    """A message of the user."""

    role: Literal["user"]
    content: str | Annotated[list[Part], Field(min_length=1, max_length=100)]
    name: str | None = None


class ChatAssistantMessage(BaseModel):
    """An earlier reply. In a session, only the messages after the last reply count."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    role: Literal["assistant"]
    content: Any = None
    tool_calls: list[Any] | None = None


class ToolMessage(Body):
    """The result of a client's tool, or the decision for a call that asks for an approval. `tool_call_id` is the call's id."""

    role: Literal["tool"]
    tool_call_id: Annotated[str, StringConstraints(min_length=1, max_length=128)]
    content: TextContent | dict[str, Any]
    """For an approval: JSON such as `{"decision": "approve"}`, as a text or as an object."""
    assent: Any = Field(None, description="Ignored: the decisions that a list of messages has here.")


Message = Annotated[InstructionMessage | ChatUserMessage | ChatAssistantMessage | ToolMessage, Field(discriminator="role")]


class Function(Body):
    """A function of the client's."""

    name: Annotated[str, StringConstraints(pattern=r"^[a-zA-Z0-9_-]{1,128}$")]
    description: Annotated[str, StringConstraints(max_length=10_000)] | None = None
    parameters: Annotated[InputSchema | None, BeforeValidator(lambda schema: schema or None)] = None
    strict: bool | None = None


class FunctionTool(Body):
    """A tool that the client runs."""

    type: Literal["function"]
    function: Function


class StreamOptions(Body):
    """Options of a stream."""

    include_usage: bool | None = None
    include_obfuscation: bool | None = None


@dataclass(frozen=True)
class Only:
    """Limits a field to null and a few values."""

    values: tuple[Any, ...]
    remedy: str

    def check(self, value: Any) -> Any:
        """Return the value. Raises ValueError for a value that means more than this server can do."""
        if value is not None and not any(value == known and type(value) is type(known) for known in self.values):
            raise ValueError(f"is not supported: {self.remedy}")
        return value

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return no_info_after_validator_function(self.check, handler(source))

    def __get_pydantic_json_schema__(self, _schema: CoreSchema, _handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return {"description": f"Other values are not supported: {self.remedy}", **one_of(None, *self.values)}


_AGENT_DECIDES = {"description": "Accepted and ignored, as the agent decides it. `assent.ignored` names the field."}
Ignored = Annotated[Any, WithJsonSchema(_AGENT_DECIDES)]
_One = Annotated[Any, Only((1,), "send another request for another reply.")]
_NoLogprobs = Annotated[Any, Only((False, 0), "leave it out, as no log probabilities are known.")]
_NoAudio = Annotated[Any, Only((), "leave it out, as replies are text.")]
_Modalities = Annotated[Any, Only((["text"],), "leave it out, as replies are text.")]
_NoFunctions = Annotated[Any, Only((), "use `tools`, which replace functions.")]
_NoWebSearch = Annotated[Any, Only((), "leave it out, as the agent has its own tools.")]
_TextFormat = Annotated[Any, Only(({"type": "text"},), "leave it out, and describe the format in a message.")]
_NotForced = Annotated[
    Any, Only(("auto",), "leave it out, as the agent chooses its tools; for no tools of yours leave out `tools`.")
]


class ChatCreate(Body):
    """A request to an agent, in OpenAI's format."""

    model_config = examples(
        {"model": MODEL + IDS["agent_id"], "messages": [{"role": "user", "content": "Please refund order 1042."}]},
        {
            "model": MODEL + IDS["agent_id"],
            "metadata": {"session_id": IDS["session_id"]},
            "messages": [{"role": "tool", "tool_call_id": IDS["event_id"], "content": "Done."}],
            "stream": True,
        },
    )

    model: Annotated[str, StringConstraints(max_length=200)] = Field(description="`assent/` and the id of an agent.")
    messages: Annotated[list[Message], Field(min_length=1, max_length=10_000)]
    tools: Annotated[list[FunctionTool], Field(max_length=256)] | None = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    metadata: Annotated[dict[MetadataKey, MetadataValue], Field(max_length=21)] | None = Field(
        None,
        description="`session_id` names a session to continue, `environment_id` the environment of a new one, `on_behalf_of` the"
        " person for whom the API key speaks. With `approvals`: `tools`, approvals that the key may decide come as calls of"
        " `client_requestApproval`; with `text` as sentences. `chat_approvals`: `true` or `false`, for a new session, whether chat"
        " words decide approvals. All other pairs become the session's metadata.",
    )

    n: _One = None
    logprobs: _NoLogprobs = None
    top_logprobs: _NoLogprobs = None
    audio: _NoAudio = None
    modalities: _Modalities = None
    response_format: _TextFormat = None
    functions: _NoFunctions = None
    function_call: _NoFunctions = None
    tool_choice: _NotForced = None
    web_search_options: _NoWebSearch = None

    frequency_penalty: Ignored = None
    logit_bias: Ignored = None
    max_completion_tokens: Ignored = None
    max_tokens: Ignored = None
    moderation: Ignored = None
    parallel_tool_calls: Ignored = None
    prediction: Ignored = None
    presence_penalty: Ignored = None
    prompt_cache_key: Ignored = None
    prompt_cache_options: Ignored = None
    prompt_cache_retention: Ignored = None
    reasoning_effort: Ignored = None
    safety_identifier: Ignored = None
    seed: Ignored = None
    service_tier: Ignored = None
    stop: Ignored = None
    store: Ignored = None
    temperature: Ignored = None
    top_p: Ignored = None
    user: Ignored = None
    verbosity: Ignored = None

    @property
    def start(self) -> int:
        """The index of the first message after the last reply."""
        return 1 + max((index for index, each in enumerate(self.messages) if isinstance(each, ChatAssistantMessage)), default=-1)

    @property
    def agent_id(self) -> str:
        """The agent's id; empty if the model's name lacks the prefix."""
        return self.model.removeprefix(MODEL) if self.model.startswith(MODEL) else ""

    def ignored(self) -> Iterator[str]:
        """Yield the names of the fields that have a value and no effect."""
        for name in _IGNORED:
            if getattr(self, name) is not None:
                yield name
        if any(tool.function.strict for tool in self.tools or ()):
            yield "tools.function.strict"


_IGNORED = tuple(
    name
    for name, field in ChatCreate.model_fields.items()
    if any(getattr(m, "json_schema", 0) is _AGENT_DECIDES for m in field.metadata)
)


class ModelsQuery(IdPaged):
    """GET /v1/models. The fields are those of Anthropic's SDK: a list in OpenAI's form has no pages."""

    lifecycle: list[Literal["active", "deprecated", "retired"]] = Field(
        default_factory=list, description="Agents are `active`. An archived agent is left out."
    )


class MessageList(Paged):
    """GET /v1/sessions/{id}/messages."""

    format: Literal["openai"] = "openai"
    approvals: Literal["text", "tools"] = "text"
    """With `tools`, the last page has a message with the calls of `client_requestApproval` that this key may decide."""


class MessagesSend(Body):
    """Messages for a session."""

    model_config = examples(
        {"messages": [{"role": "user", "content": "Please refund order 1042."}]},
        {"messages": [{"role": "tool", "tool_call_id": ASK_ID, "content": '{"decision": "approve"}'}]},
    )

    messages: Annotated[
        list[Annotated[ChatUserMessage | ToolMessage, Field(discriminator="role")]],
        Field(min_length=1),
        AtMost("max_events_per_post"),
    ]
    on_behalf_of: PersonName | None = Field(None, description="The person for whom the API key speaks in messages of the user.")
