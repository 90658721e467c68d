"""A part of the archive that is missing or was altered is named, and nothing else fails. Parts are files in a folder, or in S3."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import warm
from own_database import Clock
from rows.archived import MONTH, archive, conversation, parts, read_back
from rows.stage import Stage, say

from models.database.transactions import transact, transaction
from models.errors import Unreadable
from models.operate import archiving
from models.operate.doctor import parts as doctor
from models.session.archive import contents, files
from models.session.archive.files import ArchiveAway
from models.session.archive.part import ArchivePart, erase_parts
from models.session.tool_call.input import CallInput
from models.session.tool_call.row import ToolCall
from workers.sweeps import archiving as archiving_sweeps

Setting = Callable[[str, str], None]


@pytest.fixture
def folder(tmp_path: Path, setting: Setting) -> Iterator[Path]:
    """The archive's folder."""
    setting("archive_url", str(tmp_path / "archive"))
    yield tmp_path / "archive"
    files.close()


@pytest.fixture(scope="module")
def s3() -> Iterator[str]:
    """The address of a stand-in for S3, with the bucket `old`."""
    import boto3
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    keys = {"aws_access_key_id": "key", "aws_secret_access_key": "secret", "region_name": "us-east-1"}
    client = boto3.client("s3", endpoint_url=f"http://{host}:{port}", **keys)
    client.create_bucket(Bucket="old")
    client.close()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture
def bucket(s3: str, setting: Setting) -> Iterator[str]:
    """The archive's bucket."""
    setting("archive_url", "s3://old/sessions")
    setting("archive_options", json.dumps({"key": "key", "secret": "secret", "client_kwargs": {"endpoint_url": s3}}))
    yield s3
    files.close()


UNDER_GEVENT = """
from gevent import monkey; monkey.patch_all()
import gevent
from models.session.archive import files

def use(number):
    files.put(f"w/s/{number}", b"content" * number)
    content = files.get(f"w/s/{number}")
    files.remove(f"w/s/{number}")
    return content == b"content" * number and files.get(f"w/s/{number}") is None

ticks = []
ticker = gevent.spawn(lambda: [(gevent.sleep(0.01), ticks.append(1)) for _ in range(1000)])
users = [gevent.spawn(use, number) for number in range(1, 6)]
gevent.joinall(users)
print(all(user.value for user in users), len(ticks) > 3)
"""


def test_processes_with_greenlets_read_a_bucket(bucket: str) -> None:
    run = warm.run("-c", UNDER_GEVENT)
    assert run.stdout.split() == ["True", "True"], run.stderr


def old_session(stage: Stage, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> tuple[str, dict[str, Any], list[ArchivePart]]:
    """An archived session of several parts, and what was read of it before."""
    session = conversation(stage)
    before = read_back(stage, session)
    clock.advance(MONTH)
    monkeypatch.setattr(archiving, "PART_BYTES", 2_000)
    assert archive(stage, session) > 2
    contents.forget()
    return session, before, parts(stage, session)


def test_a_folder_holds_the_parts(stage: Stage, clock: Clock, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    session, before, of_session = old_session(stage, clock, monkeypatch)
    assert {file.name for file in folder.rglob("*") if file.is_file()} == {part.id for part in of_session}
    assert read_back(stage, session) == before
    with transaction(stage.workspace_id) as db:
        erase_parts(db, session)
    archiving_sweeps.remove_parts()
    assert [file for file in folder.rglob("*") if file.is_file()] == []


def test_a_bucket_holds_the_parts(stage: Stage, clock: Clock, bucket: str, monkeypatch: pytest.MonkeyPatch) -> None:
    session, before, of_session = old_session(stage, clock, monkeypatch)
    assert read_back(stage, session) == before
    assert all(files.get(part.key) for part in of_session)
    with transaction(stage.workspace_id) as db:
        erase_parts(db, session)
    archiving_sweeps.remove_parts()
    assert not any(files.get(part.key) for part in of_session)
    assert parts(stage, session) == []


@pytest.mark.parametrize("damage", ["missing", "altered", "cut"])
def test_a_damaged_part_is_named_in_its_place(
    stage: Stage, clock: Clock, folder: Path, monkeypatch: pytest.MonkeyPatch, damage: str
) -> None:
    session, before, of_session = old_session(stage, clock, monkeypatch)
    part = max(of_session, key=lambda each: each.rows)
    file = folder / part.key
    content = file.read_bytes()
    if damage == "missing":
        file.unlink()
    else:
        file.write_bytes(content[:-1] + (b"" if damage == "cut" else bytes([content[-1] ^ 1])))
    after = read_back(stage, session)
    lost = range(part.first_seq, part.last_seq + 1)
    for name in ("all", "backwards"):
        assert [event for event in after[name] if event[0] not in lost] == [event for event in before[name] if event[0] not in lost]
        [(seq, gap)] = [event for event in after[name] if event[0] in lost]
        assert (seq, gap["type"]) == (part.last_seq, "session.error")
        assert f"part {part.id} of the archive" in gap["error"]["message"]
        assert ("altered" if damage == "cut" else damage) in gap["error"]["message"]
    assert "session.error" in {event["type"] for _, event in after["types"]}, "though it is of no type that was asked for"
    assert "could not be read" in json.dumps(after["history"])
    stage.message(session, "Go on.")
    stage.reply(session, say("I go on."))
    assert stage.read(session).status == "idle"
    [finding] = [one for one in doctor.findings() if one.check == "archive"]
    assert finding.subjects == (part.id,)
    file.write_bytes(content)
    contents.forget()
    stage_now = read_back(stage, session)
    assert stage_now["all"][: len(before["all"])] == before["all"]
    assert not [one for one in doctor.findings() if one.check == "archive"]


def test_a_sweep_finds_a_damaged_part_that_nobody_reads(
    stage: Stage, clock: Clock, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, _, of_session = old_session(stage, clock, monkeypatch)
    (folder / of_session[0].key).unlink()
    archiving_sweeps.check_parts()
    assert not [one for one in doctor.findings() if one.check == "archive"], "each part is checked once a day"
    clock.advance(86_401)
    archiving_sweeps.check_parts()
    [finding] = [one for one in doctor.findings() if one.check == "archive"]
    assert finding.subjects == (of_session[0].id,)


def test_a_secret_of_a_damaged_part_is_refused_with_its_name(
    stage: Stage, clock: Clock, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session, _, of_session = old_session(stage, clock, monkeypatch)
    for part in of_session:
        (folder / part.key).unlink()
    with transaction(stage.workspace_id) as db:
        [first, *_] = db.find(ToolCall, "WHERE session_id = %(id)s", id=session)
    with pytest.raises(Unreadable, match=r"of the archive.*is missing"):
        transact(stage.workspace_id, lambda db: CallInput.of(db, first))


def test_an_archive_that_is_away_fails_nothing_for_good(
    stage: Stage, clock: Clock, bucket: str, setting: Setting, monkeypatch: pytest.MonkeyPatch
) -> None:
    session, before, of_session = old_session(stage, clock, monkeypatch)
    away = {"key": "key", "secret": "secret", "client_kwargs": {"endpoint_url": "http://127.0.0.1:9"}}
    monkeypatch.setattr(files, "SECONDS", 1.0)
    files.close()
    setting("archive_options", json.dumps(away))
    with pytest.raises(ArchiveAway):
        read_back(stage, session)
    assert [part.fault for part in parts(stage, session)] == [None] * len(of_session), "nobody knows that it is missing"
    young = conversation(stage)
    assert read_back(stage, young)["all"]
    clock.advance(MONTH)
    archiving_sweeps.archive()
    assert stage.events(young), "its rows stay"
    files.close()
    setting("archive_options", json.dumps(away | {"client_kwargs": {"endpoint_url": bucket}}))
    assert read_back(stage, session) == before
