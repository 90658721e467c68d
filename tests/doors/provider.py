"""A provider of OpenID Connect in its own process, with accounts, and browsers that sign in there."""

import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
from crashes.processes import running, wait_for
from people import Visitor


@contextmanager
def provider_at(folder: Path) -> Iterator[str]:
    """Run a provider that logs to this folder. Yields the issuer's URL."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    command = [sys.executable, "-m", "oidc_provider_mock", "--port", str(port), "--require-nonce", "true"]
    with running(command, {}, folder / "log"):
        wait_for("the provider answers", lambda: _answers(f"{url}/.well-known/openid-configuration"))
        yield url


def _answers(url: str) -> bool:
    try:
        return httpx2.get(url).is_success
    except httpx2.HTTPError:
        return False


def account(provider: str, subject: str = "anna-1", **claims: Any) -> None:
    """Set the claims of an account at the provider."""
    known = {"email": "anna@example.com", "email_verified": True, "name": "Anna Lang", "groups": []} | claims
    httpx2.put(f"{provider}/users/{subject}", json=known).raise_for_status()


def begin(browser: Visitor, issuer: str = "corp") -> str:
    """Begin a sign-in. Returns the URL of the provider to which the browser is sent."""
    begun = browser.get(f"/sign-in/oidc/{issuer}", params={"next": "/inbox/account"})
    assert begun.status_code == 303, begun.text
    return begun.headers["location"]


def vouch(at: str, subject: str = "anna-1") -> str:
    """Sign in at the provider. Returns the URL to which it sends the browser back."""
    answer = httpx2.post(at, data={"sub": subject})
    assert answer.status_code == 302, answer.text
    return answer.headers["location"]


def enter(browser: Visitor, subject: str = "anna-1", issuer: str = "corp") -> httpx2.Response:
    """Sign in by the provider. Returns our response."""
    return browser.get(vouch(begin(browser, issuer), subject), headers={"sec-fetch-site": "cross-site"})
