"""A receiver of webhooks for development: shows each delivery that the SDK verifies, and refuses any other request."""

from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import anthropic
from standardwebhooks import WebhookVerificationError

MOST_BYTES = 1_000_000
"""Far more than a delivery, which has less than a thousand bytes."""

Show = Callable[[Any, str], None]
"""Called with the SDK's event and the request's body; for a refused request, with None and the reason."""


class ReceivingServer(ThreadingHTTPServer):
    """Listens on loopback. The port 0 selects a free one."""

    daemon_threads = True

    def __init__(self, port: int, show: Show) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self.url = f"http://127.0.0.1:{self.server_address[1]}/"
        self.secret = ""
        self._show = show
        self._client = anthropic.Anthropic(api_key="unused")

    def serve(self, secret: str) -> None:
        """Receive deliveries that are signed with this secret, until an exception such as Ctrl-C's."""
        self.secret = secret
        self.serve_forever(0.1)

    def take(self, body: str, headers: dict[str, str]) -> int:
        """Show a delivery. Returns the status of the response."""
        try:
            event: Any = self._client.beta.webhooks.unwrap(body, headers=headers, key=self.secret)
        except (WebhookVerificationError, ValueError) as error:
            self._show(None, str(error))
            return 400
        self._show(event, body)
        return 204


class _Handler(BaseHTTPRequestHandler):
    server: ReceivingServer
    timeout = 20

    def do_POST(self) -> None:
        """Pass a delivery to `ReceivingServer.take`."""
        length = self.headers.get("content-length", "")
        if not length.isdecimal() or int(length) > MOST_BYTES:
            self.send_error(413)
            return
        body = self.rfile.read(int(length)).decode(errors="replace")
        status = self.server.take(body, {name.lower(): value for name, value in self.headers.items()})
        self.send_response(status)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Log nothing: `Show` prints each delivery."""
