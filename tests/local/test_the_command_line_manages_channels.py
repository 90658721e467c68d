"""`assent channels` against the API as it is served, and `assent secrets` against the database."""

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from click.testing import CliRunner
from local.conftest import Assent
from outbox.conftest import secret_of
from outbox.notified import notify
from outbox.receiver import Receiver, receiving
from rows.stage import Stage

from api.cli.main import main
from models.database import encryption
from models.database.transactions import transaction
from models.notices.channel import Channel, NewChannel
from models.outbox.endpoint import Endpoint, NewEndpoint
from models.settings import settings

TELEGRAM = "tgram://123456789:AAabcdefghijklmnopqrstuvwxyz/12345"


@pytest.fixture
def ops(monkeypatch: pytest.MonkeyPatch) -> Iterator[Receiver]:
    """A receiver behind the operator's URL `ops`."""
    with receiving() as receiver:
        monkeypatch.setenv("ASSENT_NOTIFICATION_URLS", json.dumps({"ops": receiver.url.replace("http://", "json://")}))
        settings.cache_clear()
        yield receiver


def test_channels_are_added_changed_listed_and_removed(assent: Assent, stage: Stage) -> None:
    quiet = ["--quiet", "22:00-07:00", "--time-zone", "UTC"]
    row = assent("channels", "add", "slack", "C012AB3CD", "--name", "approvals", *quiet).splitlines()[1]
    channel_id = row.split()[0]
    assert re.split(r" {2,}", row)[1:] == ["slack", "C012AB3CD", "approvals", "enabled", "at once", "22:00 to 07:00 UTC", "-"]
    assert "only reminders" in assent("channels", "add", "operator", "ops", "--only-reminders")
    secret = assent("channels", "add", "apprise", typed=f"{TELEGRAM}\n")
    assert "apprise  Telegram" in secret
    changed = assent("channels", "change", channel_id, "--disable", "--quiet", "none").splitlines()[1]
    assert re.split(r" {2,}", changed)[4:] == ["disabled", "at once", "-", "disabled by a person"]
    told = json.loads(assent("channels", "change", channel_id, "--outcomes", "--json"))
    assert told["tells_outcomes"]
    assert len(json.loads(assent("channels", "list", "--json"))) == 3
    assert assent("channels", "remove", channel_id) == f"{channel_id} is deleted.\n"
    assert channel_id not in assent("channels", "list")


def test_a_channel_is_tested_and_the_command_waits_for_the_result(
    assent: Assent, stage: Stage, ops: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    channel_id = assent("channels", "add", "operator", "ops").splitlines()[1].split()[0]
    # Each pause of the command does the work of the process `deliver`. Only the thread that patched settings may do it.
    clock = SimpleNamespace(monotonic=time.monotonic, sleep=lambda _seconds: notify(stage))
    monkeypatch.setattr("api.cli.channels.time", clock)
    assert assent("channels", "test", channel_id) == "The channel took the test message.\n"
    ops.status = 500
    assert assent("channels", "test", channel_id, code=1) == (
        "Error: The channel did not take the test message. ops did not take the message.\n"
    )
    monkeypatch.setattr("api.cli.channels.TEST_SECONDS", 0)
    assert "Does the process deliver run?" in assent("channels", "test", channel_id, code=1)


def test_a_wrong_channel_is_refused(assent: Assent) -> None:
    assert "ASSENT_MAIL_FROM" in assent("channels", "add", "mail", "ops@example.com", code=1)
    assert "known service" in assent("channels", "add", "apprise", typed="json://10.0.0.1/\n", code=1)
    assert "22:00-07:00" in assent("channels", "add", "operator", "ops", "--quiet", "night", code=2)
    assert "name a change" in assent("channels", "change", "chan_1", code=2)
    assert "None." in assent("channels", "list")


def test_secrets_are_rotated_with_the_keys_of_a_folder(stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = settings().deliver_private_keys
    assert old is not None
    with transaction(stage.workspace_id) as db:
        about = {"url": "https://example.com", "name": "", "description": ""}
        endpoint, secret = Endpoint.create(db, stage.principal, NewEndpoint(enabled_events=[], **about))
        row = Channel.create(db, stage.principal, NewChannel(kind="apprise", address="Telegram", secret=TELEGRAM))
    printed = CliRunner().invoke(main, ["secrets", "keys", "deliver"], catch_exceptions=False).output
    names = dict(line.split("=", 1) for line in printed.splitlines())
    new = names["ASSENT_DELIVER_PRIVATE_KEYS"]
    assert encryption.public_of(new) == names["ASSENT_DELIVER_PUBLIC_KEY"]
    (tmp_path / "deliver.key").write_text(f"{new} {old.get_secret_value()}")
    for variable in names:
        monkeypatch.delenv(variable)
    settings.cache_clear()
    rotate = ["secrets", "rotate", "deliver", "--data-dir", str(tmp_path)]
    for count in (2, 0):
        result = CliRunner().invoke(main, rotate, catch_exceptions=False)
        assert result.output == f"{count} secrets were encrypted anew.\n"
    monkeypatch.setenv("ASSENT_DELIVER_PRIVATE_KEYS", new)
    settings.cache_clear()
    assert secret_of(stage.get(Endpoint, endpoint.id)) == secret
    assert encryption.decrypt("deliver", str(stage.get(Channel, row.id).secret), row.id) == TELEGRAM
    monkeypatch.setenv("ASSENT_DELIVER_PUBLIC_KEY", encryption.new_keys()[1])
    monkeypatch.setenv("ASSENT_DELIVER_PRIVATE_KEYS", encryption.new_keys()[0])
    settings.cache_clear()
    result = CliRunner().invoke(main, rotate, catch_exceptions=False)
    assert result.exit_code == 1
    assert "2 secrets cannot be decrypted" in result.output
