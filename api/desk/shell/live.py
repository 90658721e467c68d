"""The stream that tells open pages to look again: one per page, over the hub of all streams.

    event: changed
    data: 17

The stream carries no content. After a change a page fetches itself again, with the rights that its person has then.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from flask import Response

from api.desk.shell.blueprint import desk
from api.door import pages
from api.door.errors import Denied
from api.door.framed import query_value
from api.door.routes import EVENT_STREAM
from api.streams.hub import hub
from api.streams.reader import Reader
from api.streams.stream import COMMENT, HEADERS
from models.settings import settings


@dataclass
class ChangesOfPage:
    """The stream of one open page. Iterate it for the bytes to send."""

    reader: Reader

    def __iter__(self) -> Iterator[bytes]:
        """Yield a comment at once, so that the headers leave, an event for each change, and comments while nothing changes."""
        yield COMMENT
        count = 0
        while not (self.reader.refused or self.reader.gone or self.reader.has_no_client):
            if not self.reader.wake.wait(settings().stream_comment_seconds):
                yield COMMENT
                continue
            self.reader.wake.clear()
            if self.reader.look:
                self.reader.look = False
                count += 1
                yield f"event: changed\ndata: {count}\n\n".encode()


@desk.get("/inbox/stream")
def stream() -> Response:
    """Stream the changes of the workspace's approvals since the page with this `mark` was drawn."""
    person = pages.current("own or read")
    if person is None:
        raise Denied(401, "You are signed out.")
    reader = Reader.of(person, person.workspace_id, mark=query_value("mark") or "")
    hub().register(reader)
    response = Response(iter(ChangesOfPage(reader)), mimetype=EVENT_STREAM, headers=HEADERS)
    response.call_on_close(lambda: hub().unregister(reader))
    return response
