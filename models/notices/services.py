"""Kinds of channels, and the services of the kind `apprise`: those of the package apprise whose host is fixed and public.

apprise sends with an HTTP client of its own. So a URL may name no host, and no option that changes how the client connects.
"""

import re
from typing import Literal, NamedTuple, get_args

ChannelKind = Literal["mail", "slack", "apprise", "operator", "push"]
"""`apprise`: a service with a fixed public host, by a URL of the package apprise. `operator`: one of the operator's URLs. `push`: a
browser of a person."""
CHANNEL_KINDS: tuple[ChannelKind, ...] = get_args(ChannelKind)


class Service(NamedTuple):
    """A service, and the form of its URLs."""

    name: str
    example: str
    pattern: re.Pattern[str]
    hosts: frozenset[str]
    """The only hosts that apprise connects to."""
    escaped_characters: str = ""
    """Characters with a meaning in messages, which the service shows as they are after a backslash. apprise escapes the others."""


def _service(name: str, example: str, pattern: str, *hosts: str, escaped_characters: str = "") -> Service:
    return Service(name, example, re.compile(pattern), frozenset(hosts), escaped_characters)


_ID = "[A-Za-z0-9_-]"
SERVICES = {
    "tgram": _service("Telegram", "tgram://BOT_TOKEN/CHAT_ID", rf"\d{{5,}}:{_ID}{{20,}}/-?\d+", "api.telegram.org"),
    "pover": _service("Pushover", "pover://USER_KEY@TOKEN", r"[A-Za-z0-9]{30}@[A-Za-z0-9]{30}", "api.pushover.net"),
    "discord": _service(
        "Discord",
        "discord://WEBHOOK_ID/WEBHOOK_TOKEN",
        rf"\d{{10,}}/{_ID}{{20,}}",
        "discord.com",
        escaped_characters=r"\`*_~|#>-[](){}<:",
    ),
    "pbul": _service("Pushbullet", "pbul://ACCESS_TOKEN", r"[A-Za-z0-9.]{20,}", "api.pushbullet.com"),
    "gchat": _service(
        "Google Chat", "gchat://WORKSPACE/KEY/TOKEN", rf"{_ID}{{5,}}/{_ID}{{10,}}/{_ID}{{10,}}", "chat.googleapis.com"
    ),
    "pagerduty": _service(
        "PagerDuty", "pagerduty://INTEGRATION_KEY@API_KEY", rf"{_ID}{{10,}}@{_ID}{{10,}}", "events.pagerduty.com"
    ),
}
"""By the scheme of the URL."""
PAGERDUTY = "pagerduty"
"""The scheme of the service that shows an incident for an approval until it is told of the approval's end."""
MOST_CHARACTERS = 500


def scheme_of(url: str) -> str:
    """Return the scheme of a URL of the package apprise, which ignores its case."""
    return url.partition("://")[0].lower()


def service_of(url: str) -> Service:
    """Return the service of a URL that a person may choose. Raises ValueError, which does not show the URL."""
    scheme, _, rest = url.partition("://")
    service = SERVICES.get(scheme)
    if service is None:
        examples = ", ".join(each.example for each in SERVICES.values())
        raise ValueError(f"must be the URL of a known service: {examples}. For any other, the operator names a URL.")
    if len(url) > MOST_CHARACTERS or not service.pattern.fullmatch(rest):
        raise ValueError(f"must have the form {service.example}, with nothing after it.")
    return service
