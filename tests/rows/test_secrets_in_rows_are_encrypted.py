"""Secrets in rows are encrypted with a public key, decrypted by one kind of process, bound to their row, and rotated."""

import pytest
from outbox.conftest import secret_of
from own_database import Clock
from rows.archived import MONTH, archive, conversation, parts, read_back
from rows.stage import Stage

from models.database import encryption
from models.database.transactions import transaction
from models.errors import Conflict
from models.notices.channel import Channel, NewChannel
from models.operate import rotation
from models.outbox.endpoint import Endpoint, NewEndpoint
from models.schema import TABLES
from models.session.archive import contents
from models.session.archive.part import erase_parts
from models.settings import Settings, settings
from models.workspace.provider_key import ProviderKey
from workers.sweeps import archiving

TELEGRAM = "tgram://123456789:AAabcdefghijklmnopqrstuvwxyz/12345"


def use(patch: pytest.MonkeyPatch, public: str, *private: str) -> None:
    """Have this process hold these keys of `deliver`."""
    patch.setenv("ASSENT_DELIVER_PUBLIC_KEY", public)
    patch.setenv("ASSENT_DELIVER_PRIVATE_KEYS", " ".join(private))
    settings.cache_clear()


@pytest.fixture(autouse=True)
def _own_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    private, public = encryption.new_keys()
    use(monkeypatch, public, private)
    settings()  # threads of this process keep these, whatever a test sets in the environment


def test_only_a_process_with_the_private_key_decrypts(monkeypatch: pytest.MonkeyPatch) -> None:
    private, public = encryption.new_keys()
    use(monkeypatch, public)
    ciphertext = encryption.encrypt("deliver", "hunter2", "chan_1")
    assert "hunter2" not in ciphertext
    assert encryption.encrypt("deliver", "hunter2", "chan_1") != ciphertext, "equal secrets have different ciphertexts"
    with pytest.raises(encryption.Undecryptable, match="no private key"):
        encryption.decrypt("deliver", ciphertext, "chan_1")
    use(monkeypatch, public, private)
    assert encryption.decrypt("deliver", ciphertext, "chan_1") == "hunter2"
    with pytest.raises(encryption.Undecryptable, match="ASSENT_TURNS_PRIVATE_KEYS"):
        encryption.decrypt("turns", ciphertext, "chan_1")
    assert encryption.public_of(private) == public


def test_a_changed_or_moved_ciphertext_is_refused() -> None:
    ciphertext = encryption.encrypt("deliver", "hunter2", "chan_1")
    key_id, _, content = ciphertext.partition(".")
    for changed in (f"{key_id}.{content[:-8]}AAAAAAA=", f"{key_id}.", f"{key_id}.not base64", ciphertext[:-1]):
        with pytest.raises(encryption.Undecryptable):
            encryption.decrypt("deliver", changed, "chan_1")
    with pytest.raises(encryption.Undecryptable, match="belongs to another row"):
        encryption.decrypt("deliver", ciphertext, "chan_2")


def test_another_key_does_not_decrypt(monkeypatch: pytest.MonkeyPatch) -> None:
    ciphertext = encryption.encrypt("deliver", "hunter2", "chan_1")
    private, public = encryption.new_keys()
    use(monkeypatch, public, private)
    with pytest.raises(encryption.Undecryptable, match="no private key"):
        encryption.decrypt("deliver", ciphertext, "chan_1")
    assert not encryption.is_current("deliver", ciphertext)


def test_without_a_public_key_no_secret_is_stored(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, "")
    with pytest.raises(Conflict, match="ASSENT_DELIVER_PUBLIC_KEY is not set"), transaction(stage.workspace_id) as db:
        Channel.create(db, stage.principal, NewChannel(kind="apprise", address="Telegram", secret=TELEGRAM))


@pytest.mark.parametrize("key", ["short", "AAAA", "A" * 44, "not base64 at all!"])
def test_a_malformed_key_stops_the_start_and_is_not_shown(key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASSENT_DELIVER_PRIVATE_KEYS", key)
    with pytest.raises(ValueError, match="32 bytes in base64") as refusal:
        Settings()
    assert key not in str(refusal.value)


def test_a_rotation_encrypts_every_secret_anew_and_can_be_repeated(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rotation, "BATCH", 2)
    (old, old_public), (new, new_public) = encryption.new_keys(), encryption.new_keys()
    use(monkeypatch, old_public, old)
    with transaction(stage.workspace_id) as db:
        endpoint, secret = Endpoint.create(db, stage.principal, NewEndpoint(url="https://example.com", enabled_events=[]))
        rows = [
            Channel.create(db, stage.principal, NewChannel(kind="apprise", address="Telegram", secret=TELEGRAM)) for _ in range(5)
        ]
        Channel.create(db, stage.principal, NewChannel(kind="slack", address="C012AB3CD"))
    with transaction(stage.workspace_id) as db:
        newer = db.get_one(Endpoint, endpoint.id, lock=True).regenerate_secret(db, stage.principal)
    use(monkeypatch, new_public, new, old)
    assert rotation.rotate("deliver") == (7, 0)
    assert rotation.rotate("deliver") == (0, 0)
    use(monkeypatch, new_public, new)
    after = stage.get(Endpoint, endpoint.id)
    assert secret_of(after) == newer
    assert encryption.decrypt("deliver", str(after.previous_secret), after.id) == secret
    for row in rows:
        assert encryption.decrypt("deliver", str(stage.get(Channel, row.id).secret), row.id) == TELEGRAM


def test_a_rotation_leaves_secrets_that_it_cannot_decrypt(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    with transaction(stage.workspace_id) as db:
        row = Channel.create(db, stage.principal, NewChannel(kind="apprise", address="Telegram", secret=TELEGRAM))
    private, public = encryption.new_keys()
    with monkeypatch.context() as patch:
        use(patch, public, private)
        assert rotation.rotate("deliver") == (0, 1)
    settings.cache_clear()
    assert encryption.decrypt("deliver", str(stage.get(Channel, row.id).secret), row.id) == TELEGRAM


def test_the_keys_of_providers_are_rotated(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    with transaction(stage.workspace_id) as db:
        row = ProviderKey.store(db, stage.principal, "anthropic", "sk-ant-0123456789abcdef")
    old = settings().turns_private_keys
    assert old is not None
    new, public = encryption.new_keys()
    monkeypatch.setenv("ASSENT_TURNS_PUBLIC_KEY", public)
    monkeypatch.setenv("ASSENT_TURNS_PRIVATE_KEYS", f"{new} {old.get_secret_value()}")
    settings.cache_clear()
    assert rotation.rotate("turns") == (1, 0)
    monkeypatch.setenv("ASSENT_TURNS_PRIVATE_KEYS", new)
    settings.cache_clear()
    assert stage.get(ProviderKey, row.id).decrypted() == "sk-ant-0123456789abcdef"


def test_the_parts_of_the_archive_are_rotated(stage: Stage, monkeypatch: pytest.MonkeyPatch, clock: Clock) -> None:
    session_id, erased = conversation(stage), conversation(stage)
    clock.advance(MONTH)
    assert archive(stage, session_id)
    assert archive(stage, erased)
    before = read_back(stage, session_id)
    old = settings().archive_private_keys
    assert old is not None
    new, public = encryption.new_keys()

    def use_archive(*private: str) -> None:
        monkeypatch.setenv("ASSENT_ARCHIVE_PUBLIC_KEY", public)
        monkeypatch.setenv("ASSENT_ARCHIVE_PRIVATE_KEYS", " ".join(private))
        settings.cache_clear()
        contents.forget()

    use_archive(new)
    assert rotation.rotate("archive") == (0, 2), "the former key is missing"
    use_archive(new, old.get_secret_value())
    with transaction(stage.workspace_id) as db:
        erase_parts(db, erased)
    assert rotation.rotate("archive") == (1, 0)
    assert rotation.rotate("archive") == (0, 0)
    assert [part.status for part in parts(stage, session_id)] == ["gone", "kept"], "who reads the old one now, still finds it"
    assert [part.status for part in parts(stage, erased)] == ["gone"]
    use_archive(new)
    assert read_back(stage, session_id) == before
    clock.advance(3601)
    archiving.remove_parts()
    assert [part.status for part in parts(stage, session_id)] == ["kept"]
    assert read_back(stage, session_id) == before


def test_the_rotation_covers_every_column_with_a_secret() -> None:
    known = {(table.__tablename__, column) for columns in rotation.COLUMNS.values() for table, column in columns}
    columns = {(table.__tablename__, column) for table in TABLES for column in table.__table__.columns.keys()}  # noqa: SIM118
    assert {(table, column) for table, column in columns if column.endswith(("secret", "ciphertext"))} == known
