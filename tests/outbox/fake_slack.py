"""A fake Slack: an HTTP server with the methods of Slack's Web API that Assent calls, and with Slack's limits.

The fake checks the token and each block as Slack documents, keeps the messages that it accepts, and posts signed clicks to Assent.
Sources, at docs.slack.dev: reference/block-kit, reference/methods/chat.postMessage, reference/interaction-payloads,
authentication/verifying-requests-from-slack.
"""

import hashlib
import hmac
import itertools
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlencode

import httpx2

Json = dict[str, Any]

TOKEN = "xoxb-of-the-fake"
SECRET = "8f742231b10e8888abcd99yyyzzz85a5"
TEAM = "T0FAKE"
ROOM = "C0APPROVALS"
MOST_BLOCKS = 50
MOST_TEXT = 40_000


class Refused(Exception):
    """Slack refuses a call with this error, such as `invalid_blocks`."""


@dataclass
class Message:
    """A message as people see it."""

    channel: str
    ts: str
    text: str
    blocks: list[Json]
    edits: int = 0
    edited_at: float = 0.0

    @property
    def shown(self) -> str:
        """All texts of the message."""
        return json.dumps(self.blocks, ensure_ascii=False)

    @property
    def buttons(self) -> dict[str, Json]:
        """The buttons, by their texts."""
        elements = [element for block in self.blocks if block["type"] == "actions" for element in block["elements"]]
        return {element["text"]["text"]: element for element in elements}


@dataclass
class Ephemeral:
    """A message for one user's eyes."""

    channel: str
    user: str
    text: str


@dataclass
class FakeSlack:
    """One Slack workspace with one app."""

    url: str = ""
    messages: dict[tuple[str, str], Message] = field(default_factory=dict)
    ephemerals: list[Ephemeral] = field(default_factory=list)
    calls: list[tuple[str, Json]] = field(default_factory=list)
    conversations: set[str] = field(default_factory=lambda: {ROOM})
    errors: list[str] = field(default_factory=list)
    """Errors of the next calls, the first one first."""
    limited_for: int = 0
    """Seconds to wait, which the next call gets in a 429."""
    answers: threading.Event = field(default_factory=threading.Event)
    """While unset, calls hang."""
    _numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def message(self) -> Message:
        """The one message."""
        [message] = self.messages.values()
        return message

    def call(self, method: str, token: str, body: Json) -> Json:
        """Answer one call of the Web API. Raises Refused."""
        if token != f"Bearer {TOKEN}":
            raise Refused("invalid_auth")
        with self._lock:
            self.calls.append((method, body))
            if self.errors:
                raise Refused(self.errors.pop(0))
            match method:
                case "chat.postMessage":
                    return self._post(body)
                case "chat.update":
                    return self._update(body)
                case "chat.postEphemeral":
                    return self._post_ephemeral(body)
        raise Refused("unknown_method")

    def _post(self, body: Json) -> Json:
        channel = body["channel"]
        if channel.startswith("U"):
            channel = "D" + channel[1:]  # a user's direct messages
        elif channel not in self.conversations:
            raise Refused("channel_not_found")
        text, blocks = _checked(body)
        assert body.get("unfurl_links") is False, "links are not unfurled"
        assert body.get("unfurl_media") is False, "links are not unfurled"
        ts = f"{int(time.time())}.{next(self._numbers):06}"
        self.messages[channel, ts] = Message(channel, ts, text, blocks)
        return {"channel": channel, "ts": ts}

    def _update(self, body: Json) -> Json:
        message = self.messages.get((body["channel"], body["ts"]))  # a user's id is not a channel here, as in Slack
        if message is None:
            raise Refused("channel_not_found" if body["channel"].startswith("U") else "message_not_found")
        message.text, message.blocks = _checked(body)
        message.edits, message.edited_at = message.edits + 1, time.monotonic()
        return {"channel": message.channel, "ts": message.ts}

    def _post_ephemeral(self, body: Json) -> Json:
        text, _ = _checked(body)
        self.ephemerals.append(Ephemeral(body["channel"], body["user"], text))
        return {"message_ts": f"{int(time.time())}.{next(self._numbers):06}"}


def _checked(body: Json) -> tuple[str, list[Json]]:
    """Return a message's text and blocks. Raises Refused as Slack does."""
    text, blocks = body.get("text") or "", body.get("blocks") or []
    if not text and not blocks:
        raise Refused("no_text")
    if len(text) > MOST_TEXT:
        raise Refused("msg_too_long")
    if len(blocks) > MOST_BLOCKS or not all(_is_good(block) for block in blocks):
        raise Refused("invalid_blocks")
    return text, blocks


def _is_good(block: Json) -> bool:
    """True if a block keeps the limits of its type."""
    match block["type"]:
        case "header":
            return _is_text(block["text"], 150, "plain_text")
        case "section":
            return _is_text(block["text"], 3000)
        case "context":
            return 0 < len(block["elements"]) <= 10 and all(_is_text(element, 2000) for element in block["elements"])
        case "actions":
            names = [element["action_id"] for element in block["elements"]]
            return 0 < len(names) == len(set(names)) <= 25 and all(_is_button(element) for element in block["elements"])
        case "divider":
            return True
    return False


def _is_text(text: Json, most: int, *types: str) -> bool:
    return text["type"] in (types or ("mrkdwn", "plain_text")) and 0 < len(text["text"]) <= most


def _is_button(element: Json) -> bool:
    return (
        element["type"] == "button"
        and _is_text(element["text"], 75, "plain_text")
        and len(element["action_id"]) <= 255
        and len(element.get("value", "")) <= 2000
        and element.get("style", "primary") in {"primary", "danger"}
    )


@dataclass(frozen=True)
class SlackPerson:
    """A Slack user who clicks."""

    id: str = "U0ANNA"
    name: str = "anna"
    team_id: str = TEAM


ANNA = SlackPerson()


def click(url: str, message: Message, text: str, who: SlackPerson = ANNA, **more: Any) -> httpx2.Response:
    """Click the button with this text, as it is shown now. `more`: as of `post`."""
    return press(url, message, message.buttons[text], who, **more)


def press(url: str, message: Message, button: Json, who: SlackPerson = ANNA, **more: Any) -> httpx2.Response:
    """Click a button that the message has, or had."""
    action = {"type": "button", "block_id": "b", "action_ts": "1.0"} | {
        name: button[name] for name in ("action_id", "text", "value")
    }
    payload = {
        "type": "block_actions",
        "user": {"id": who.id, "username": who.name, "name": who.name, "team_id": who.team_id},
        "api_app_id": "A0FAKE",
        "token": "legacy",
        "container": {"type": "message", "message_ts": message.ts, "channel_id": message.channel, "is_ephemeral": False},
        "trigger_id": "1.2.3",
        "team": {"id": TEAM, "domain": "fake"},
        "enterprise": None,
        "channel": {"id": message.channel, "name": "approvals"},
        "message": {"type": "message", "ts": message.ts, "text": message.text, "blocks": message.blocks},
        "response_url": "https://hooks.slack.com/actions/T0FAKE/1/secret",
        "actions": [action],
    }
    return post(url, payload, **more)


def post(url: str, payload: Json, *, age: float = 0, secret: str = SECRET, headers: Json | None = None) -> httpx2.Response:
    """Post an interaction as Slack does. `age`: seconds since the signature."""
    body = urlencode({"payload": json.dumps(payload)})
    signed = signed_headers(body, age=age, secret=secret) | (headers or {})
    return httpx2.post(f"{url}/v1/slack/interactions", content=body, headers=signed, timeout=20)


def signed_headers(body: str, *, age: float = 0, secret: str = SECRET) -> dict[str, str]:
    """The headers of a request of Slack's."""
    timestamp = str(int(time.time() - age))
    digest = hmac.new(secret.encode(), f"v0:{timestamp}:{body}".encode(), hashlib.sha256).hexdigest()
    return {
        "content-type": "application/x-www-form-urlencoded",
        "x-slack-request-timestamp": timestamp,
        "x-slack-signature": f"v0={digest}",
    }


@contextmanager
def faking() -> Iterator[FakeSlack]:
    """A Slack on loopback."""
    slack = FakeSlack()
    slack.answers.set()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            raw = self.rfile.read(int(self.headers["content-length"])).decode()
            slack.answers.wait(30)
            if slack.limited_for:
                seconds, slack.limited_for = slack.limited_for, 0
                self._answer(429, {"ok": False, "error": "ratelimited"}, {"retry-after": str(seconds)})
                return
            body = json.loads(raw) if "json" in self.headers["content-type"] else dict(parse_qsl(raw))
            try:
                answer = {"ok": True} | slack.call(self.path.rpartition("/")[2], self.headers["authorization"] or "", body)
            except Refused as refused:
                answer = {"ok": False, "error": str(refused)}
            self._answer(200, answer, {})

        def _answer(self, status: int, answer: Json, headers: dict[str, str]) -> None:
            raw = json.dumps(answer).encode()
            self.send_response(status)
            for name, value in ({"content-type": "application/json", "content-length": str(len(raw))} | headers).items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(raw)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    slack.url = f"http://127.0.0.1:{server.server_address[1]}/api/"
    try:
        yield slack
    finally:
        slack.answers.set()
        server.shutdown()
        server.server_close()
        thread.join()
