"""Whatever somebody writes into the address of a page or into a form, the answer is a page, and never a fault of the server."""

import httpx2
import people
import pytest
from rows.stage import Stage

NUL = "%00"


PATHS = [
    *(f"/inbox?show=all&{name}={NUL}" for name in ("tool", "q", "agent", "session", "group", "kind")),
    *(f"/inbox?show=decided&person={NUL}", f"/inbox/next?after={NUL}", f"/inbox/together?tool={NUL}"),
    *(f"/inbox/sessions?agent={NUL}", f"/inbox/sessions?person={NUL}", f"/inbox/policies?agent={NUL}"),
    *(f"/inbox?q=%0{NUL}0", f"/inbox?show=all&agent=%0{NUL}0", f"/inbox?show=decided&person=%0{NUL}0", f"/inbox?page={NUL}"),
    *(f"/inbox/channels/new?like={NUL}", f"/inbox/audit?who=user:{NUL}", f"/inbox/search?q={NUL}"),
]
"""Addresses with a value that no database can hold."""


def test_an_address_may_hold_anything(api: str, stage: Stage, subtests: pytest.Subtests) -> None:
    with people.member(stage, "admin").client(api) as client:
        for path in PATHS:
            with subtests.test(path):
                assert client.get(path, follow_redirects=True).status_code in {200, 404}


@pytest.mark.parametrize("host", ["[:::::.]:8777", "127.0.0.1:99999", "[", "a b", ""])
def test_a_host_may_be_anything(api: str, host: str) -> None:
    for path in ("/inbox", "/sign-in"):
        assert httpx2.get(f"{api}{path}", headers={"host": host}, follow_redirects=False).status_code < 500


def test_an_address_with_too_many_fields_is_refused(api: str, stage: Stage) -> None:
    with people.member(stage, "admin").client(api) as client:
        response = client.get(f"/inbox?{'&'.join(f'f{number}=1' for number in range(51))}")
    assert response.status_code == 400
    assert "at most 50 fields" in response.text


@pytest.mark.parametrize("fields", [{"name": "fin\0ance"}, {"na\0me": "finance"}])
def test_a_form_with_nul_is_refused(api: str, stage: Stage, fields: dict[str, str]) -> None:
    with people.member(stage, "admin").client(api) as client:
        response = client.post("/inbox/people/groups", data=fields)
        assert response.status_code == 400
        assert "must not contain the character NUL" in response.text
        assert "ance" not in client.get("/inbox/people/groups").text
