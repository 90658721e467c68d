"""The wait for a run: yields its text as it comes, until the session rests, waits for somebody, or the time is over.

No transaction is open meanwhile. The hub wakes the wait, as it wakes streams. Each wait reads its own events from Postgres.
"""

import logging
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from api.chat import asking
from api.chat.beginning import Place
from api.chat.preview import APART, Preview
from api.door.errors import Denied
from api.streams.reader import Reader
from api.streams.stream import RESTS, following
from models.audit.principal import Principal
from models.database.rows import Db
from models.database.transactions import ERRORS, transact, transaction
from models.errors import Busy, NotFound
from models.flow.carry_on.listing import OURS, QUIET
from models.pure.pricing.usage import SPAN
from models.session.event.row import Event
from models.session.row import Session
from models.session.thread.row import PRESENT_TURNS
from models.settings import settings

log = logging.getLogger("assent.api")

LOOK_SECONDS = 1.0
"""Time between two looks at whether the client has hung up."""


@dataclass
class Wait:
    """One client's wait for a run. Iterate over it; then its fields say how the run ended."""

    reader: Reader
    principal: Principal
    place: Place
    rest: Event | None = None
    """The event with which the run rests."""
    running: bool = False
    """True if the time of the request was over before the run rested."""
    error: dict[str, Any] | None = None
    """The last error of the run, if nothing came after it."""
    texts: list[str] = field(default_factory=list)
    """The texts of the stored messages."""
    usage: dict[str, int] = field(default_factory=lambda: dict.fromkeys(SPAN, 0))
    """The tokens of the requests to the model that have ended."""
    listing: str = ""
    """The listing, if it is the newest that the conversation shows. It ends the reply."""
    _preview: Preview = field(default_factory=Preview)
    _over: bool = False

    def __iter__(self) -> Iterator[str]:
        """Yield pieces of text, and an empty text at least every LOOK_SECONDS.

        Raises NotFound if the session is deleted, Denied if the key is revoked, Busy if the client hangs up.
        """
        ends_at = time.monotonic() + settings().chat_seconds
        while True:
            self.reader.wake.clear()
            self._check()
            yield from self._news()
            if self._over:
                if self.listing:
                    yield self.say(self.listing)
                return
            yield from self._deltas()
            # A message that is half written is waited for, so that the next request need not repeat its beginning.
            if time.monotonic() > ends_at + (settings().chat_seconds if self._preview.sent else 0):
                self.running = True
                return
            self.reader.wake.wait(LOOK_SECONDS)
            yield ""

    def _news(self) -> Iterator[str]:
        """Read the stored events up to the event with which the run rests. Yields their text."""
        while self.reader.look and not self._over:
            self.reader.look = False
            yield from self._stored()

    def say(self, text: str) -> str:
        """Add a text that is not an event to the reply. Returns the piece of a stream that brings the text."""
        self.texts.append(text)
        return self._preview.rest("", text)

    def _check(self) -> None:
        if self.reader.hung_up():
            raise Busy("The client has hung up.")
        if self.reader.refused:
            raise Denied(401, "The API key or the sign-in is no longer valid.")
        if self.reader.gone:
            raise NotFound("session", self.place.session_id)

    def _stored(self) -> Iterator[str]:
        try:
            (page, more), session = transact(self.principal.workspace_id, self._read, only_reads=True)
        except (*ERRORS, Busy) as error:
            # The wait goes on without the database or the archive. The hub's next tick wakes it again.
            log.warning("wait for %s: %s", self.place.session_id, type(error).__name__)
            return
        for event in page:
            self.reader.seq = event.seq
            if event.is_in(self.reader.thread_id):
                yield from self._take(event)
            if event.type in RESTS and event.seq > self.place.rests_after:
                self.rest, self._over = event, True
                return
        self.reader.look = self.reader.look or more
        if session is None:
            raise NotFound("session", self.place.session_id)
        self._over = session.last_seq <= self.reader.seq and self._rests(session)

    def _read(self, db: Db) -> tuple[tuple[deque[Event], bool], Session | None]:
        """Return the next page of events, as `following` does, and the session; None if it is deleted."""
        return following(db, self.reader), db.get(Session, self.place.session_id)

    def _rests(self, session: Session) -> bool:
        """True if the session rests and no later event will say so: the event came before this request."""
        if session.status in {"idle", "terminated"}:
            return True
        return session.status == "waiting" and (self.place.added or self._needs_client(session))

    def _needs_client(self, session: Session) -> bool:
        """True if the client has to send a result or a decision."""
        with transaction(self.principal.workspace_id) as db:
            if db.rows(_OPEN, session=session.id):
                return True
            return asking.awaits(db, self.principal, session, self.place.approvals)

    def _take(self, event: Event) -> Iterator[str]:
        if event.type not in QUIET:
            self.listing = ""
        match event.type:
            case "agent.message":
                self.error = None
                text = APART.join(block["text"] for block in event.body["content"] if block["text"])
                if event.body.get(OURS, {}).get("kind") == "waiting":
                    self.listing = text
                    return
                if text:
                    self.texts.append(text)
                if rest := self._preview.rest(event.id, text):
                    yield rest
            case "session.error":
                self.error = event.body["error"]
            case "session.status_running":
                self.error = None
            case "span.model_request_end":
                tokens = event.body["model_usage"]
                self.usage = {name: number + (tokens.get(name) or 0) for name, number in self.usage.items()}

    def _deltas(self) -> Iterator[str]:
        """Yield text that is not stored yet."""
        while self.reader.frames:
            if text := self._preview.piece(self.reader.frames.popleft()):
                yield text


_OPEN = f"SELECT FROM tool_call WHERE turn_id = {PRESENT_TURNS} AND status = 'with_client' LIMIT 1"
