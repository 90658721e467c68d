"""Other services, by the package apprise: a text and a link. apprise cannot edit, so each stage is a separate message.

In PagerDuty all messages about an approval are one incident, which the last of them resolves.
"""

import logging
from urllib.parse import urlencode

import apprise

from models.notices.notice import Notice
from models.notices.notification import Receipt
from models.notices.services import PAGERDUTY, SERVICES, scheme_of, service_of
from models.settings import settings
from workers.notifiers import Address, Gone, Retry, texts
from workers.notifiers.plain import plain

MOST_EVIDENCE = 500
"""Characters of evidence: services cut messages at 1000 to 4000."""
_ASSET = apprise.AppriseAsset(app_id="Assent", app_desc="Assent", app_url="", async_mode=False, secure_logging=True)
# The package's debug messages contain addresses with their secrets.
logging.getLogger("apprise").setLevel(logging.WARNING)


class AppriseService:
    """Sends to a service that a person chose, by the URL in the channel's secret."""

    def send(self, address: Address, notice: Notice, earlier: Receipt | None) -> Receipt:  # noqa: ARG002 - it cannot edit
        """Send a message. Checks the URL's form again, because the form decides to which host apprise connects."""
        try:
            service = service_of(address.secret)
        except ValueError as error:
            raise Gone(f"The channel's URL {error}") from None
        return _notify(address.secret, service.name, notice)


class OperatorUrl:
    """Sends to a URL in the operator's configuration. The channel holds the URL's name."""

    def send(self, address: Address, notice: Notice, earlier: Receipt | None) -> Receipt:  # noqa: ARG002
        """Send a message."""
        url = settings().notification_urls.get(address.text)
        if url is None:
            raise Gone(f"The operator has configured no URL with the name {address.text} (ASSENT_NOTIFICATION_URLS).")
        return _notify(url.get_secret_value(), address.text, notice)


def _notify(url: str, name: str, notice: Notice) -> Receipt:
    scheme = scheme_of(url)
    service = SERVICES.get(scheme)
    notice = plain(notice, service.escaped_characters if service else "")
    urls = [url]
    if scheme == PAGERDUTY:
        actions = {"decided": ["resolve"], "test": ["trigger", "resolve"]}.get(notice.stage, ["trigger"])
        urls = [_of_incident(url, notice, action) for action in actions]
    for each in urls:
        _send(each, name, notice)
    return {"stage": notice.stage}


def _send(url: str, name: str, notice: Notice) -> None:
    sender = apprise.Apprise(asset=_ASSET)
    if not sender.add(url):
        raise Gone(f"The package apprise cannot read the URL for {name}.")
    if not sender.notify(
        title=texts.subject(notice), body=texts.body(notice, MOST_EVIDENCE), body_format=apprise.NotifyFormat.TEXT
    ):
        raise Retry(f"{name} did not take the message.")


def _of_incident(url: str, notice: Notice, action: str) -> str:
    """Return PagerDuty's URL with the options for one incident per approval. They replace options of the operator's."""
    base, _, query = url.partition("?")
    own = {"action": action, "dedup": notice.approval_id, "overflow": "truncate"}
    other_options = [option for option in query.split("&") if option and option.partition("=")[0].lower() not in own]
    return f"{base}?{'&'.join([*other_options, urlencode(own)])}"
