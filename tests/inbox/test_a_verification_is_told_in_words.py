"""The page of the audit says what a verification found in words: no id, no microsecond, and no alarm before the first seal."""

import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path

import httpx2
import people
import psycopg
import pytest
from audit.tampering import Intruder, act, sealed
from own_database import Clock, DatabaseUrls
from rows.stage import Stage

from models.audit import signed_heads
from models.audit.seals import LATE_SECONDS
from models.database.transactions import transaction
from models.settings import settings

_NOTICE = re.compile(r'<div class="notice (\w+)" role="status">(.*?)</div>', re.DOTALL)
_TAG = re.compile(r"<[^>]*>")
_OF_MACHINES = re.compile(r"\b(?:sesn|wrkspc|user|api)_\w+|\d\d:\d\d:\d\d\.\d|T\d\d:|\+00:00")


@pytest.fixture
def admin(stage: Stage, api: str) -> Iterator[httpx2.Client]:
    with people.member(stage, "admin", email="anna@example.com").client(api) as client:
        yield client


@pytest.fixture
def sealer(private_key: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A key with which this process seals. The server knows its public half."""
    signed_heads.make(tmp_path / "heads")
    monkeypatch.setenv("ASSENT_AUDIT_KEY", private_key)
    monkeypatch.setenv("ASSENT_AUDIT_HEADS_FILE", str(tmp_path / "heads"))
    settings.cache_clear()


def verdict(client: httpx2.Client) -> tuple[str, str]:
    """The tone of the report and its words. Each of them is for people."""
    response = client.get("/inbox/audit/verify")
    found = _NOTICE.search(response.text)
    assert found, response.text
    words = " ".join(unescape(_TAG.sub("", found[2])).split())
    assert not _OF_MACHINES.findall(words), words
    return found[1], words


def test_before_the_first_seal_nothing_is_wrong_for_a_minute(admin: httpx2.Client, stage: Stage, clock: Clock) -> None:
    act(stage)
    tone, words = verdict(admin)
    assert (tone, words.partition(".")[0]) == ("warn", "Not sealed yet")
    assert "acts in 2 chains follow from each other, and no seal covers them. The first seal follows within 60 seconds." in words
    clock.advance(LATE_SECONDS + 1)
    tone, words = verdict(admin)
    assert (tone, words.partition(".")[0]) == ("bad", "Not sealed")
    assert "No seal of the workspace has a good signature, although a key is known here: all of it can be made anew" in words


@pytest.mark.usefixtures("sealer")
def test_what_is_sealed_is_intact_and_what_follows_is_said_once(admin: httpx2.Client, stage: Stage) -> None:
    act(stage)
    sealed(stage)
    stage.session()
    tone, words = verdict(admin)
    assert (tone, words.partition(".")[0]) == ("good", "Intact")
    assert words.count("not sealed yet") == 1


@pytest.mark.usefixtures("sealer")
def test_what_was_changed_is_named_by_its_session_s_title(admin: httpx2.Client, stage: Stage, database_urls: DatabaseUrls) -> None:
    titled, other = act(stage), act(stage)
    with transaction(stage.workspace_id) as db:
        db.write("UPDATE session SET title = 'Release 4.2' WHERE id = %(id)s", id=titled)
    sealed(stage)
    with psycopg.connect(database_urls.admin, autocommit=True) as connection:
        connection.execute("SET session_replication_role = replica")
        intruder = Intruder(connection, stage.workspace_id)
        for chain in (titled, other):
            intruder.do("UPDATE audit SET principal = 'person:nobody' WHERE chain = %s AND seq = 3", chain)
    tone, words = verdict(admin)
    assert (tone, words.partition(".")[0]) == ("bad", "Not intact")
    assert "Act 3 of “Release 4.2” does not follow from the one before" in words
    assert "Act 3 of a session of Agent does not follow from the one before" in words
    assert f'href="/inbox/audit?session={other}&amp;about=all"' in admin.get("/inbox/audit/verify").text


@pytest.mark.usefixtures("sealer")
def test_a_chain_that_is_missing_is_named(admin: httpx2.Client, stage: Stage, database_urls: DatabaseUrls) -> None:
    titled = act(stage)
    with transaction(stage.workspace_id) as db:
        db.write("UPDATE session SET title = 'Release 4.2' WHERE id = %(id)s", id=titled)
    sealed(stage)
    with psycopg.connect(database_urls.admin, autocommit=True) as connection:
        connection.execute("SET session_replication_role = replica")
        Intruder(connection, stage.workspace_id).do("DELETE FROM audit WHERE chain = %s", titled)
    assert "The chain of “Release 4.2” is missing: all of its" in verdict(admin)[1]
