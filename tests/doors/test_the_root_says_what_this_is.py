"""`/` needs no key. It sends a browser to the inbox, and gives a program the name, the version and links."""

from importlib.metadata import version

import httpx2
import pytest
from doors.served import Caller, good

BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8"


@pytest.mark.parametrize("accept", ["*/*", "application/json", "application/json, text/html;q=0.9", "text/plain"])
def test_a_program_gets_the_version_and_links_that_work(api: str, accept: str) -> None:
    with Caller(api, "") as nobody:
        root = good(nobody.get("/", headers={"accept": accept}))
        assert (root["name"], root["version"]) == ("assent", version("assent-server"))
        for link in ("docs", "openapi", "healthz"):
            assert nobody.get(root[link]).status_code == 200


@pytest.mark.parametrize("accept", [BROWSER, "text/html"])
def test_a_browser_is_sent_to_the_inbox(api: str, accept: str) -> None:
    with Caller(api, "") as nobody:
        sent = nobody.get("/", headers={"accept": accept})
        assert sent.status_code == 303
        assert sent.headers["vary"] == "accept"
        page = httpx2.get(httpx2.URL(f"{api}/").join(sent.headers["location"]))
    assert page.url.path == "/inbox/home"
    assert page.headers["content-type"] == "text/html; charset=utf-8"
