"""The links in mails that unsubscribe from mail. Each link can disable only the channel that sent the mail.

A GET changes nothing. Mail programs post `List-Unsubscribe=One-Click` (RFC 8058) without cookies, as does the page's button.
"""

import hmac

from flask import Blueprint, Response

from api.door import pages, parsing
from models.audit.principal import system
from models.database.rows import Db
from models.database.transactions import transaction
from models.errors import NotFound
from models.notices.channel import Channel
from models.pure.key_secret import sha256

unsubscribing = Blueprint("unsubscribing", __name__)  # its templates are those for signing in
pages.install(unsubscribing, "refused.html")

REASON = "Unsubscribed by a link in a mail."
_LINK = "/unsubscribe/<workspace_id>/<channel_id>/<token>"


@unsubscribing.errorhandler(NotFound)
def refuse_link(_refusal: NotFound) -> Response:
    """Show the page of a link that is not, or no longer, that of a channel."""
    words = "It is incomplete, or its channel was removed. Sign in to see your channels."
    return pages.failed("refused.html", 404, "This link does not work", words)


@unsubscribing.get(_LINK)
def show(workspace_id: str, channel_id: str, token: str) -> Response:
    """Show the page with the button that disables the channel."""
    parsing.check_ids({"workspace_id": workspace_id, "channel_id": channel_id})
    with transaction(workspace_id) as db:
        row = _channel(db, channel_id, token)
    return pages.html("unsubscribe.html", address=row.address, is_off=row.state == "disabled")


@unsubscribing.post(_LINK)
def unsubscribe(workspace_id: str, channel_id: str, token: str) -> Response:
    """Disable the channel. Idempotent."""
    parsing.check_ids({"workspace_id": workspace_id, "channel_id": channel_id})
    with transaction(workspace_id) as db:
        row = _channel(db, channel_id, token, lock=True)
        row.disable(db, system("unsubscribe", workspace_id), REASON)
    return pages.html("unsubscribe.html", address=row.address, is_off=True)


def _channel(db: Db, channel_id: str, token: str, *, lock: bool = False) -> Channel:
    """Return the channel with this token. Raises NotFound."""
    row = db.get(Channel, channel_id, lock=lock)
    if row is None or not hmac.compare_digest(row.token_sha256 or "", sha256(token)):
        raise NotFound("channel", channel_id[:80])
    return row
