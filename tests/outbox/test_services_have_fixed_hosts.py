"""People choose only services whose host is fixed: apprise resolves no other name, whatever the URL holds."""

import socket
import threading
from typing import Any

import pytest
from outbox.notices import NOTICE

from models.notices.services import SERVICES, service_of
from workers.notifiers import Address, Gone, Retry, notifier_for

URLS = {
    "tgram": "tgram://123456789:AAabcdefghijklmnopqrstuvwxyz/-12345",
    "pover": f"pover://{'u' * 30}@{'t' * 30}",
    "discord": f"discord://12345678901/{'t' * 68}",
    "pbul": f"pbul://o.{'t' * 32}",
    "gchat": f"gchat://AAAAbbbb/{'k' * 39}/{'t' * 43}",
    "pagerduty": f"pagerduty://{'i' * 32}@{'a' * 20}",
}


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names that are resolved. No name has an address.

    The publisher's thread is left alone: after a test whose hints go to the default Redis, it looks up `localhost`.
    """
    resolved: list[str] = []
    resolve_really = socket.getaddrinfo

    def resolve(host: Any, *more: Any, **options: Any) -> Any:
        if threading.current_thread().name == "publisher":
            return resolve_really(host, *more, **options)
        resolved.append(host if isinstance(host, str) else host.decode())
        raise socket.gaierror("no network in this test")

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    return resolved


def address(url: str) -> Address:
    return Address("chan_1", "wrkspc_1", "user_1", "a service", url)


@pytest.mark.parametrize("scheme", SERVICES)
def test_a_service_s_messages_go_to_its_host_alone(scheme: str, names: list[str]) -> None:
    with pytest.raises(Retry):
        notifier_for("apprise").send(address(URLS[scheme]), NOTICE, None)
    assert names, "it tried to send"
    assert set(names) <= SERVICES[scheme].hosts


@pytest.mark.parametrize(
    "url",
    [
        "json://10.0.0.1/",
        "xml://internal",
        "form://internal",
        "ntfy://internal/topic",
        "gotify://internal/token",
        "mailto://user:pass@internal",
        "syslog://",
        "workflows://internal/a/b",
        "TGRAM://123456789:AAabcdefghijklmnopqrstuvwxyz/1",
        *(
            f"{url}{more}"
            for url in URLS.values()
            for more in ("?verify=no", "/", "#x", "@internal", " ", "\n", "?format=markdown")
        ),
        *(url.replace("://", "://internal/", 1) for url in URLS.values()),
        *(url.replace("://", "://a:b@internal:25/", 1) for url in URLS.values()),
        "discord://" + "1" * 600,
    ],
)
def test_a_url_that_names_a_host_or_an_option_is_refused_before_apprise_sees_it(url: str, names: list[str]) -> None:
    with pytest.raises(ValueError, match="must"):
        service_of(url)
    with pytest.raises(Gone):
        notifier_for("apprise").send(address(url), NOTICE, None)
    assert names == []
