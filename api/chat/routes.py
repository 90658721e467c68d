"""Routes in OpenAI's format: completions, models, and the messages of a session."""

import json
import logging
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from flask import Blueprint, Response, g, request

from api.chat import deciding, listing, responses, translating
from api.chat.beginning import Place, begin, receive
from api.chat.ending import End, end
from api.chat.preview import APART
from api.chat.requests import MODEL, ChatCreate, MessageList, MessagesSend, ModelsQuery
from api.chat.waiting import Wait
from api.door import auth, errors, parsing
from api.door.paging import Selection, id_page
from api.door.routes import EVENT_STREAM, Door, dumps, opens, reads, respond, slip_of, take_effect, writes
from api.streams.hub import hub
from api.streams.reader import Reader
from api.streams.stream import COMMENT, HEADERS
from api.v1.agents.routes import heads
from api.v1.approvals.visible import check_session, find_session
from api.v1.sessions.waiting import for_people
from models.audit.principal import Principal
from models.database import ids
from models.database.rows import Db
from models.errors import Busy, Invalid, Refusal
from models.flow.lock import lock
from models.settings import settings
from models.workspace.agent import Agent

log = logging.getLogger("assent.api")

chat = Blueprint("chat", __name__, url_prefix="/v1")

SESSION_HEADER = "X-Assent-Session"
MOST_MODELS = 1000

errors.FORMATS["/v1/chat/completions"] = responses.error
errors.FORMATS["chat.send"] = responses.error


def _scopes(body: ChatCreate | MessagesSend) -> list[str]:
    """Return the scopes that a request's messages need beside `sessions`."""
    start = body.start if isinstance(body, ChatCreate) else 0
    return ["approvals"] if any(deciding.is_decision(message) for message in body.messages[start:]) else []


@chat.after_request
def name(response: Response) -> Response:
    """Add the header in which OpenAI's SDKs look for the request's id."""
    response.headers["x-request-id"] = g.request_id
    return response


@chat.post("/chat/completions")
@opens(
    Door(
        responses.ChatCompletion,
        body=ChatCreate,
        scopes=("sessions", "read"),
        headers=(SESSION_HEADER,),
        errors=(404, 502),
        frame=responses.ChatChunk,
        error=responses.ChatError,
    )
)
def complete() -> Response:
    """Send messages to an agent in the format of Chat Completions of OpenAI.

    Without a session the request creates one. The response is sent when the run ends, or waits for an approval or for tools of
    the client. Then `finish_reason` is `tool_calls`, or the content says what waits for approval, and `assent.waiting_on` lists
    the approvals. A `tool` message for a call of `client_requestApproval` is a decision, and needs the scope `approvals`.
    """
    principal = auth.authenticate("sessions", "read")
    body, raw = parsing.body(ChatCreate)
    auth.require(principal, *_scopes(body))
    session_id = _session_id(body)
    slip = slip_of(principal, raw + b"\n" + session_id.encode())
    if slip is not None:
        # The first try may have waited for the run before its response was lost.
        slip = replace(slip, seconds=slip.seconds + int(2 * settings().chat_seconds))
    effect = take_effect(principal, slip, lambda db: begin(db, principal, body, session_id))
    place = Place.model_validate_json(effect.payload)
    wait = _wait(principal, place, deltas=bool(body.stream))
    completion = Completion(wait)
    headers = {SESSION_HEADER: place.session_id} | effect.headers
    if body.stream:
        include_usage = bool(body.stream_options and body.stream_options.include_usage)
        response = Response(completion.stream(include_usage), mimetype=EVENT_STREAM, headers=HEADERS | headers)
        response.call_on_close(completion.close)
        return response
    return respond(dumps(completion.whole()), **headers)


def _session_id(body: ChatCreate) -> str:
    """Return the id of the session that the request names, by its metadata or by a header; empty for a new one. Raises Invalid."""
    by_header, by_metadata = request.headers.get(SESSION_HEADER, ""), (body.metadata or {}).get("session_id", "")
    if by_header and by_metadata and by_header != by_metadata:
        raise Invalid("metadata.session_id", f"differs from the header {SESSION_HEADER}; send one of them.")
    return by_metadata or by_header


def _wait(principal: Principal, place: Place, *, deltas: bool) -> Wait:
    reader = Reader.of(principal, place.session_id, seq=place.after, deltas=deltas)
    hub().register(reader)
    reader.look = True
    return Wait(reader, principal, place)


class Completion:
    """One response, whole or as a stream of chunks."""

    def __init__(self, wait: Wait) -> None:
        self.wait, self.place = wait, wait.place
        self.id = ids.new("chatcmpl")

    def whole(self) -> responses.ChatCompletion:
        """Wait for the run, and return the response."""
        try:
            for _ in self.wait:
                pass
            last = end(self.wait)
        finally:
            hub().unregister(self.wait.reader)
        if last.sentences:
            self.wait.say(last.sentences)
        text = APART.join(self.wait.texts)
        calls = {"tool_calls": last.tool_calls} if last.tool_calls else {}
        message = responses.AssistantReply(role="assistant", content=None if calls and not text else text, refusal=None, **calls)
        choice = responses.Choice(index=0, message=message, finish_reason=last.finish_reason, logprobs=None)
        return responses.ChatCompletion(
            id=self.id,
            object="chat.completion",
            created=self.place.created,
            model=self.place.model,
            choices=[choice],
            usage=last.usage,
            assent=last.assent,
        )

    def stream(self, include_usage: bool) -> Iterator[bytes]:
        """Yield the chunks as server-sent events, and comments while there are none."""
        try:
            yield from self.wait.reader.pieces(self._chunks(include_usage))
        except Busy:
            return  # the client has hung up
        except Refusal as refusal:
            yield _frame(responses.error(errors.status_of(refusal), str(refusal), getattr(refusal, "field", "")))
        except Exception:
            log.exception("stream of %s failed", self.place.session_id)
            yield _frame(responses.error(500, "Something failed here that should not have. The server's log has its trace.", ""))

    def close(self) -> None:
        """End the wait."""
        hub().unregister(self.wait.reader)

    def _chunks(self, include_usage: bool) -> Iterator[bytes]:
        yield COMMENT
        session = responses.OfAssent.from_row(None, session_id=self.place.session_id)
        yield self._chunk(responses.Delta(role="assistant", content=""), assent=session)
        sent_at = time.monotonic()
        for text in self.wait:
            if text:
                yield self._chunk(responses.Delta(content=text))
                sent_at = time.monotonic()
            elif time.monotonic() > sent_at + settings().stream_comment_seconds:
                yield COMMENT
                sent_at = time.monotonic()
        yield from self._last(end(self.wait), include_usage)

    def _last(self, last: End, include_usage: bool) -> Iterator[bytes]:
        if last.sentences:
            yield self._chunk(responses.Delta(content=self.wait.say(last.sentences)))
        if last.tool_calls:
            calls = [responses.ToolCallDelta(index=index, **dict(call)) for index, call in enumerate(last.tool_calls)]
            yield self._chunk(responses.Delta(tool_calls=calls))
        yield self._chunk(responses.Delta(), last.finish_reason, assent=last.assent)
        if include_usage:
            yield _frame(self._fields(choices=[], usage=last.usage))
        yield b"data: [DONE]\n\n"

    def _chunk(self, delta: responses.Delta, reason: responses.FinishReason | None = None, **more: Any) -> bytes:
        choice = responses.ChunkChoice(index=0, delta=delta, finish_reason=reason, logprobs=None)
        return _frame(self._fields(choices=[choice], **more))

    def _fields(self, **more: Any) -> dict[str, Any]:
        chunk = responses.ChatChunk(
            id=self.id, object="chat.completion.chunk", created=self.place.created, model=self.place.model, **more
        )
        return chunk.model_dump(mode="json", exclude_unset=True)


def _frame(body: dict[str, Any]) -> bytes:
    return f"data: {json.dumps(body, separators=(',', ':'))}\n\n".encode()


@chat.get("/models")
@reads(ModelsQuery, response=responses.Models)
def models(db: Db, _principal: Principal, query: ModelsQuery) -> responses.Models:
    """List the agents as models.

    The list is in OpenAI's format or, for a request with the header `anthropic-version`, in that of Anthropic's SDK.
    """
    return responses.Models(_model_page(db, query) if "anthropic-version" in request.headers else _model_list(db))


def _model_page(db: Db, query: ModelsQuery) -> responses.ModelPage:
    ids_only = {name: value.removeprefix(MODEL) for name in ("after_id", "before_id") if (value := getattr(query, name))}
    selection = Selection(Agent).where("archived_at IS NULL")
    if query.lifecycle and "active" not in query.lifecycle:
        selection = selection.where("false")
    agents, has_more = id_page(db, selection, query.model_copy(update=ids_only))
    versions = heads(db, agents)
    data = [
        responses.ModelInfo.from_row(agent, id=MODEL + agent.id, display_name=versions[agent.id].body["name"]) for agent in agents
    ]
    return responses.ModelPage.of(data, has_more=has_more)


def _model_list(db: Db) -> responses.ModelList:
    agents = db.find(Agent, "WHERE archived_at IS NULL ORDER BY created_at DESC, id DESC LIMIT %(most)s", most=MOST_MODELS)
    versions = heads(db, agents)
    data = [
        responses.ListedModel(
            id=MODEL + agent.id,
            object="model",
            created=int(agent.created_at.timestamp()),
            owned_by="assent",
            name=versions[agent.id].body["name"],
        )
        for agent in agents
    ]
    return responses.ModelList(object="list", data=data)


@chat.post("/sessions/<session_id>/messages")
@writes(MessagesSend, "sessions", also=_scopes, response=responses.OfAssent, errors=(404,), error=responses.ChatError)
def send(db: Db, principal: Principal, body: MessagesSend, session_id: str) -> responses.OfAssent:
    """Send messages of the user, results of tools and decisions to a session in the format of Chat Completions of OpenAI.

    The response comes as soon as all are stored. If one is refused, none is. A decision needs the scope `approvals`.
    """
    check_session(db, principal, session_id)
    locked = lock(db, session_id, principal)
    receive(locked, translating.sent(body))
    session = locked.session
    running = session.status not in {"idle", "waiting", "terminated"}
    return responses.OfAssent.from_row(
        None, session_id=session.id, waiting_on=for_people(db, [session])[session.id], running=running, ignored=[]
    )


@chat.get("/sessions/<session_id>/messages")
@reads(MessageList, "read or own", response=responses.ListedMessages)
def messages(db: Db, principal: Principal, query: MessageList, session_id: str) -> Callable[[], responses.ListedMessages]:
    """List the messages of a session in the format of Chat Completions of OpenAI.

    A page has the messages of `limit` turns, so that a call and its result are on the same page.
    """
    return listing.listed(db, principal, find_session(db, principal, session_id), query)
