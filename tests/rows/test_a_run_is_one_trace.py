"""A run is a part of the trace of the request that caused it, across all processes, and a person's wait is a span of its own."""

import json
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from doors.served import confirmation, key, message
from flask import Flask
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status
from people import member
from rows.crew import Crew, send
from rows.stage import Stage, call, say
from rows.tasks import work

from models.flow.decide import decisions
from models.operate.metrics import spans
from models.pure.pricing.usage import Usage
from models.session.approval.decision import Decision
from models.session.approval.row import Approval
from models.session.tool_call.row import ToolCall
from models.settings import settings
from workers import tool, turn
from workers.providers import ModelError, ModelReply

ASKING = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
DECIDING = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
SECRET = "nobody-shall-read-this"


class Collector:
    """A receiver of OTLP over HTTP."""

    def __init__(self) -> None:
        self.spans: list[Span] = []
        self.services: set[str] = set()
        self.bodies = b""
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                collector.take(body)
                self.send_response(200)
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def take(self, body: bytes) -> None:
        """Decode a request."""
        self.bodies += body
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
            self.services |= {each.value.string_value for each in resource.resource.attributes if each.key == "service.name"}
            self.spans += [span for scope in resource.scope_spans for span in scope.spans]

    def received(self) -> dict[str, list[Span]]:
        """Return all spans so far, by the first word of their names."""
        spans.flush()
        by_operation: dict[str, list[Span]] = {}
        for span in self.spans:
            by_operation.setdefault(span.name.split(" ")[0], []).append(span)
        return by_operation


def attributes(span: Span) -> dict[str, Any]:
    """The attributes of a span."""
    kinds = ("string_value", "int_value", "bool_value")
    return {
        each.key: next((getattr(each.value, kind) for kind in kinds if each.value.HasField(kind)), None) for each in span.attributes
    }


def place(span: Any) -> str:
    """The `traceparent` of a sampled span, or of a link."""
    return f"00-{span.trace_id.hex()}-{span.span_id.hex()}-01"


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Iterator[Collector]:
    """A collector to which this process sends."""
    one = Collector()
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{one.server.server_port}")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    settings.cache_clear()
    spans._sender.cache_clear()
    yield one
    spans._sender().provider.shutdown()
    one.server.shutdown()
    one.server.server_close()
    spans._sender.cache_clear()
    monkeypatch.undo()
    settings.cache_clear()


class Client:
    """A client of the API, in this process, whose requests may have a trace."""

    def __init__(self, app: Flask, stage: Stage) -> None:
        self.client, self.key = app.test_client(), key(stage)

    def send(self, session_id: str, event: dict[str, Any], traceparent: str = "") -> None:
        """Post an event."""
        headers = {"x-api-key": self.key} | ({"traceparent": traceparent} if traceparent else {})
        response = self.client.post(f"/v1/sessions/{session_id}/events", json={"events": [event]}, headers=headers)
        assert response.status_code == 200, response.text


@pytest.fixture
def client(flask_app: Flask, stage: Stage) -> Client:
    """A client of the stage's workspace."""
    return Client(flask_app, stage)


def run_turn(stage: Stage, session_id: str) -> None:
    """Run the session's current turn, as a worker does."""
    work(turn.run, stage.thread(session_id).turn_id or "", session_id, stage.workspace_id)


def run_gated(stage: Stage, client: Client, answers: Callable[..., None]) -> str:
    """Have a client ask, a client decide, and the agent finish. Returns the session's id."""
    session_id = stage.session(write="always_ask")
    proposal = call("write", file_path="a", content=SECRET)
    answers(
        ModelReply([say(SECRET), proposal], "tool_use", usage=Usage(input_tokens=10, output_tokens=5)),
        ModelReply([say("Done.")], "end_turn"),
    )
    client.send(session_id, message(SECRET), ASKING)
    run_turn(stage, session_id)
    [tool_call] = stage.locked(session_id, lambda locked: locked.db.find(ToolCall))
    client.send(session_id, confirmation(tool_call.id), DECIDING)
    work(tool.run, tool_call.id, session_id, stage.workspace_id)
    run_turn(stage, session_id)
    assert stage.read(session_id).status == "idle"
    return session_id


def test_all_spans_of_a_run_belong_to_the_asking_request(
    stage: Stage, client: Client, answers: Any, collector: Collector, setting: Any, tmp_path: Path
) -> None:
    setting("workdir_root", str(tmp_path))
    session_id = run_gated(stage, client, answers)
    seen = collector.received()
    [invocation], [wait], [execution] = seen["invoke_agent"], seen["wait_for_approval"], seen["execute_tool"]
    assert place(invocation).startswith(ASKING[:35])
    assert invocation.parent_span_id.hex() == ASKING.split("-")[2]
    parts = [*seen["chat"], wait, execution]
    assert len(parts) == 4
    assert {(span.trace_id, span.parent_span_id) for span in parts} == {(invocation.trace_id, invocation.span_id)}
    assert len({span.span_id for span in collector.spans}) == 5
    assert all(invocation.start_time_unix_nano <= span.start_time_unix_nano + 1e9 for span in parts)
    assert {attributes(span)["gen_ai.conversation.id"] for span in (invocation, wait)} == {session_id}
    chat = attributes(min(seen["chat"], key=lambda span: span.start_time_unix_nano))
    assert (
        chat.items()
        >= {"gen_ai.operation.name": "chat", "gen_ai.provider.name": "anthropic", "gen_ai.usage.input_tokens": 10}.items()
    )
    assert {span.kind for span in seen["chat"]} == {Span.SPAN_KIND_CLIENT}
    assert attributes(execution)["gen_ai.tool.name"] == "write"
    assert collector.services == {"assent"}


def test_a_wait_says_what_became_of_it_and_links_both_requests(
    stage: Stage, client: Client, answers: Any, collector: Collector, setting: Any, tmp_path: Path
) -> None:
    setting("workdir_root", str(tmp_path))
    run_gated(stage, client, answers)
    [wait] = collector.received()["wait_for_approval"]
    assert [place(link) for link in wait.links] == [ASKING, DECIDING]
    facts = attributes(wait)
    assert facts["assent.approval.outcome"] == "allowed"
    assert facts["assent.approval.decided_by"] == "api_key"
    assert (facts["assent.approval.kind"], facts["gen_ai.tool.name"]) == ("tool_call", "write")
    assert wait.end_time_unix_nano >= wait.start_time_unix_nano


def test_a_deadline_ends_a_wait_without_a_deciding_request(
    stage: Stage, client: Client, answers: Any, collector: Collector, clock: Any
) -> None:
    session_id = stage.session(bash="always_ask")
    answers(ModelReply([call()], "tool_use"))
    client.send(session_id, message(), ASKING)
    run_turn(stage, session_id)
    clock.advance(86_401)
    stage.expire(session_id)
    [wait] = collector.received()["wait_for_approval"]
    assert [place(link) for link in wait.links] == [ASKING]
    assert attributes(wait)["assent.approval.decided_by"] == "system"
    assert wait.end_time_unix_nano - wait.start_time_unix_nano > 86_000e9


def test_no_span_holds_a_content_or_a_name(
    stage: Stage, client: Client, answers: Any, collector: Collector, setting: Any, tmp_path: Path
) -> None:
    setting("workdir_root", str(tmp_path))
    run_gated(stage, client, answers)
    person = member(stage, "approver")
    session_id = stage.session(bash="always_ask")
    stage.propose(session_id, call(command=SECRET))
    decided_by_person(stage, session_id, person.principal)
    assert collector.received()
    for text in (SECRET, person.email):
        assert text.encode() not in collector.bodies


def test_contents_are_sent_only_by_a_setting_and_without_secrets(
    stage: Stage, client: Client, answers: Any, collector: Collector, setting: Any, tmp_path: Path
) -> None:
    setting("workdir_root", str(tmp_path))
    setting("trace_content", "true")
    session_id = stage.session(write="always_allow")
    password = "hunter2-of-the-database"
    proposal = call("write", file_path="a", content=f"PASSWORD={password}")
    answers(ModelReply([say("I write it."), proposal], "tool_use"))
    client.send(session_id, message("Please write."))
    run_turn(stage, session_id)
    [tool_call] = stage.locked(session_id, lambda locked: locked.db.find(ToolCall))
    work(tool.run, tool_call.id, session_id, stage.workspace_id)
    seen = collector.received()
    chat, execution = attributes(seen["chat"][0]), attributes(seen["execute_tool"][0])
    [asked] = json.loads(chat["gen_ai.input.messages"])
    assert asked == {"role": "user", "parts": [{"type": "text", "content": "Please write."}]}
    [reply] = json.loads(chat["gen_ai.output.messages"])
    assert [part["type"] for part in reply["parts"]] == ["text", "tool_call"]
    assert json.loads(execution["gen_ai.tool.call.arguments"])["file_path"] == "a"
    assert execution["gen_ai.tool.call.result"]
    assert password.encode() not in collector.bodies


def decided_by_person(stage: Stage, session_id: str, person: Any) -> None:
    """Have a person deny the session's approval."""
    [approval] = stage.approvals(session_id)

    def verb(locked: Any) -> str:
        return decisions.decide(locked, locked.db.get_one(Approval, approval.id), Decision("deny", deny_message=SECRET))

    stage.locked(session_id, verb, person)


def test_a_run_without_a_traced_request_has_a_trace_of_its_own(
    stage: Stage, client: Client, answers: Any, collector: Collector
) -> None:
    session_id = stage.session()
    answers(ModelError("invalid", "no"))
    client.send(session_id, message(), "00-not-a-trace-01")
    run_turn(stage, session_id)
    seen = collector.received()
    [invocation], [chat] = seen["invoke_agent"], seen["chat"]
    assert invocation.parent_span_id == b""
    assert (chat.trace_id, chat.parent_span_id) == (invocation.trace_id, invocation.span_id)
    assert chat.status.code == Status.STATUS_CODE_ERROR
    assert attributes(chat)["error.type"] == "invalid"
    assert attributes(invocation)["error.type"] == "retries_exhausted"
    client.send(session_id, message())
    answers(ModelReply([say("Done.")], "end_turn"))
    run_turn(stage, session_id)
    traces = {span.trace_id for span in collector.received()["invoke_agent"]}
    assert len(traces) == 2, "each run has one"


def test_a_sub_agent_s_run_is_part_of_its_coordinator_s(stage: Stage, answers: Any, collector: Collector) -> None:
    crew = Crew.begin(stage)
    answers(
        ModelReply([send("Reader")], "tool_use"), ModelReply([say("Read.")], "end_turn"), ModelReply([say("Done.")], "end_turn")
    )
    run_turn(stage, crew.session_id)
    for _ in range(6):
        for thread in (*crew.threads, stage.thread(crew.session_id)):
            work(turn.run, thread.turn_id or "", crew.session_id, stage.workspace_id)
    runs = {span.name: span for span in collector.received()["invoke_agent"]}
    assert set(runs) == {"invoke_agent Lead", "invoke_agent Reader"}
    lead, reader = runs["invoke_agent Lead"], runs["invoke_agent Reader"]
    assert (reader.trace_id, reader.parent_span_id) == (lead.trace_id, lead.span_id)


def test_a_request_that_is_not_sampled_causes_no_spans(stage: Stage, client: Client, answers: Any, collector: Collector) -> None:
    session_id = stage.session()
    answers(ModelReply([say("Done.")], "end_turn"))
    client.send(session_id, message(), f"{ASKING[:-2]}00")
    run_turn(stage, session_id)
    assert collector.received() == {}


def test_without_a_collector_a_request_s_trace_is_kept_and_nothing_is_sent(stage: Stage, client: Client, answers: Any) -> None:
    traced, untraced = stage.session(), stage.session()
    client.send(traced, message(), ASKING)
    client.send(untraced, message())
    answers(ModelReply([say("Done.")], "end_turn"), ModelReply([say("Done.")], "end_turn"))
    for session_id in (traced, untraced):
        run_turn(stage, session_id)
    assert (stage.thread(traced).trace or {})["parent"] == ASKING
    assert stage.thread(untraced).trace is None
    assert spans._sender.cache_info().currsize == 0


def test_work_goes_on_if_spans_cannot_be_sent(
    stage: Stage, client: Client, answers: Any, collector: Collector, setting: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    setting("workdir_root", str(tmp_path))
    with monkeypatch.context() as broken:
        broken.setattr(spans, "_sender", lambda: 1 / 0)
        run_gated(stage, client, answers)
    assert collector.received() == {}


def test_nothing_is_loaded_without_a_collector() -> None:
    program = "import sys; from models.operate.metrics import contents, spans; assert 'opentelemetry.exporter' not in sys.modules"
    subprocess.run([sys.executable, "-c", program], check=True)


def test_a_collector_without_opentelemetry_ends_the_start(collector: Collector, monkeypatch: pytest.MonkeyPatch) -> None:
    spans.check()
    monkeypatch.setattr(spans, "find_spec", lambda _: None)
    with pytest.raises(SystemExit, match="OTEL_EXPORTER_OTLP_ENDPOINT is set, and OpenTelemetry is not installed"):
        spans.check()


def test_a_collector_that_is_away_delays_nothing(
    stage: Stage, client: Client, answers: Any, setting: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:  # takes connections and never answers
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{silent.getsockname()[1]}")
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "1")
        monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "1")
        setting("workdir_root", str(tmp_path))
        spans._sender.cache_clear()
        try:
            began = time.monotonic()
            run_gated(stage, client, answers)
            assert time.monotonic() - began < 30, "no call waits for an answer"
        finally:
            spans._sender().provider.shutdown()
            spans._sender.cache_clear()
