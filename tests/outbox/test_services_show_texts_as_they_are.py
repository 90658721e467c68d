"""In a service, a text of an agent mentions nobody, hides no link's target, and is shown as it is."""

import io
import json
import re
from dataclasses import replace
from typing import Any

import pytest
import requests
from outbox.notices import NOTICE

from models.settings import settings
from workers.notifiers import Address, notifier_for

HOSTILE = "@everyone @here <@1> <@&2> <!channel> <users/all> [click](https://evil.example) <https://evil.example|Decide> *.c ||x||"
URLS = {
    "discord": f"discord://12345678901/{'t' * 68}",
    "tgram": "tgram://123456789:AAabcdefghijklmnopqrstuvwxyz/-12345",
    "gchat": f"gchat://AAAAbbbb/{'k' * 39}/{'t' * 43}",
    "mmost": "mmost://chat.example/abcdefghijklmnop",
    "slack": f"slack://T1JJ3T3L2/A1BRTD4JD/{'t' * 24}/#general",
    "msteams": "workflows://prod.azure.example:443/643e69f83c8944/sig-4LR4",
    "ntfys": "ntfys://ntfy.example/topic",
}
"""Services with and without markup. A person chooses the first three, and an operator every one."""


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The bodies of the requests that apprise would send, each as the text of its JSON."""
    bodies: list[str] = []

    def request(_session: requests.Session, *_target: str, **options: Any) -> requests.Response:
        data = options.get("json") or options["data"]
        data = json.loads(data) if isinstance(data, (str, bytes)) else data
        bodies.append(json.dumps(data, ensure_ascii=False))
        response = requests.Response()
        response.status_code, response.raw = 200, io.BytesIO(b"ok")
        return response

    monkeypatch.setattr(requests.Session, "request", request)
    return bodies


def send(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Send a notice full of markup to a URL of the operator's."""
    monkeypatch.setenv("ASSENT_NOTIFICATION_URLS", json.dumps({"ops": url}))
    settings.cache_clear()
    notice = replace(NOTICE, title=f"Run {HOSTILE}", sentence=f"{HOSTILE} wants", evidence=HOSTILE, agent=HOSTILE)
    notifier_for("operator").send(Address("chan_1", "wrkspc_1", None, "ops"), notice, None)


@pytest.mark.parametrize("scheme", URLS)
def test_nobody_is_mentioned_and_every_link_shows_where_it_leads(
    scheme: str, sent: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    send(URLS[scheme], monkeypatch)
    [body] = sent
    assert "everyone" in body
    assert NOTICE.url in body.replace("\\", ""), "our own link is whole, but for what apprise escapes"
    for mention in ("@everyone", "@here", "<@", "<!", "<users", "](", "<https://evil", "<a href"):
        assert mention not in body, mention


def test_discord_shows_each_character_of_a_call(sent: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    send(URLS["discord"], monkeypatch)
    content = json.loads(sent[0])["content"]
    evidence = next(line for line in content.splitlines() if line.startswith("| "))
    assert re.sub(r"\\(.)", r"\1", evidence).replace("\u200b", "") == f"| {HOSTILE}"
    assert re.findall(r"(?<!\\)[`*_~|#>\[\](){}<:]", evidence) == ["|"], "the bar alone is not escaped"
