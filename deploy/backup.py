"""`assent backup`: a folder with the database and the sessions' files, encrypted, and a manifest.

    FOLDER/manifest.json     when, of which release and schema, and the SHA-256 of each file; no secret
    FOLDER/database.age      Postgres' own dump as SQL, compressed
    FOLDER/workdirs.age      the sessions' files as tar, compressed; missing if no session has any, or if they were left out

The database is dumped first. So its rows are those of one moment, and files may be a little newer. A backup in the making has
another name.
"""

import gzip
import hashlib
import json
import os
import shutil
import stat
import subprocess
import tarfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import IO, Any

import psycopg

from deploy import sealed_files
from deploy.folder import CannotStart
from deploy.migrate import check_current
from deploy.postgres_tools import Address, fault, program, server_version
from models import DISTRIBUTION
from models.database import revisions
from models.database.revisions import Schema
from models.settings.tools import STORAGE_ID

FORMAT = 1
MANIFEST, DATABASE, WORKDIRS = "manifest.json", "database.age", "workdirs.age"
LOST_AND_FOUND = "lost+found"
"""A folder that some file systems have at their root."""
SCHEMA = "public"
"""The schema of all tables."""


@dataclass(frozen=True)
class Manifest:
    """What a backup is."""

    taken_at: str
    """The database's time before the dump. Whatever was committed later may be missing."""
    release: str
    revision: str
    """The schema's revision."""
    postgres: int
    """The major version of the program that dumped."""
    sha256: dict[str, str] = field(default_factory=dict)
    """The hash of each encrypted file, by its name."""
    assent_backup: int = FORMAT

    @property
    def at(self) -> datetime:
        """`taken_at` as a time."""
        return datetime.fromisoformat(self.taken_at)

    @classmethod
    def read(cls, folder: Path) -> "Manifest":
        """Return the manifest of a backup whose files are whole. Raises CannotStart."""
        try:
            content: dict[str, Any] = json.loads((folder / MANIFEST).read_text("utf-8"))
            manifest = cls(**content)
        except (OSError, ValueError, TypeError):
            raise CannotStart(f"{folder} is no backup: {MANIFEST} is missing or cannot be read") from None
        if manifest.assent_backup != FORMAT:
            raise CannotStart(f"{folder} has the format {manifest.assent_backup}: restore it with the release {manifest.release}")
        for name, digest in manifest.sha256.items():
            try:
                with (folder / name).open("rb") as file:
                    actual = hashlib.file_digest(file, "sha256").hexdigest()
            except OSError as error:
                raise CannotStart(f"{folder / name} cannot be read: {error.strerror}") from None
            if actual != digest:
                raise CannotStart(f"{folder / name} was changed or cut: its SHA-256 is not that of the manifest")
        return manifest


def release() -> str:
    """Return this release's version."""
    try:
        return version(DISTRIBUTION)
    except PackageNotFoundError:
        return "unknown"


def make(folder: Path, owner_url: str, recipients: Sequence[str], workdirs: Path | None) -> tuple[Manifest, list[str]]:
    """Write a backup into a new folder. `workdirs`: the sessions' files; None: without them.

    Returns its manifest, and the sessions' files and folders that could not be read. Raises CannotStart, psycopg.Error, OSError.
    """
    if folder.exists():
        raise CannotStart(f"{folder} exists: name a folder that does not, such as one with the time in its name")
    people = sealed_files.recipients_of(recipients)
    problem = check_current(owner_url)
    if problem:
        raise CannotStart(problem)
    if workdirs is not None:
        _check_files(owner_url, workdirs)
    dump = program("pg_dump", server_version(owner_url))
    new = folder.with_name(f"{folder.name}.part")
    shutil.rmtree(new, ignore_errors=True)
    new.mkdir(mode=0o700, parents=True)
    with psycopg.connect(owner_url, connect_timeout=3) as db:
        [(at,)] = db.execute("SELECT assent_now()").fetchall()
        revision = Schema.of(db.execute(revisions.READ.encode()).fetchall()).revision
    _dump(dump, owner_url, new / DATABASE, people)
    unreadable = _pack(workdirs, new / WORKDIRS, people) if workdirs is not None and workdirs.is_dir() else []
    manifest = Manifest(at.isoformat(), release(), revision, server_version(owner_url), _digests(new))
    _write(new / MANIFEST, json.dumps(asdict(manifest), indent=1).encode())
    new.rename(folder)
    return manifest, unreadable


def _check_files(owner_url: str, workdirs: Path) -> None:
    """Raise CannotStart if sessions have files, and this folder is no storage of theirs: a backup must not silently lack them."""
    with psycopg.connect(owner_url, connect_timeout=3) as db:
        storages = {storage_id for (storage_id,) in db.execute(_STORAGES).fetchall()}
    try:
        own = (workdirs / STORAGE_ID).read_text().strip()
    except (FileNotFoundError, NotADirectoryError):
        own = ""
    if storages and own not in storages:
        raise CannotStart(
            f"{workdirs} has no files of sessions, and sessions of this database have files: name the folder that `tools` uses by "
            "ASSENT_WORKDIR_ROOT or --workdirs, or leave the files out by --without-files"
        )


_STORAGES = "SELECT DISTINCT storage_id FROM session WHERE storage_id IS NOT NULL"


def _dump(dump: str, owner_url: str, target: Path, recipients: Sequence[Any]) -> None:
    """Encrypt the SQL of the database. Raises CannotStart if the program fails."""
    address = Address.of(owner_url)
    words = [dump, *address.words, f"--schema={SCHEMA}", "--no-password", "--lock-wait-timeout=60s"]
    with subprocess.Popen(words, env=address.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:  # noqa: S603
        assert process.stdout, "a pipe"
        assert process.stderr, "a pipe"
        with (
            _new(target) as file,
            sealed_files.encrypting(file, recipients) as plain,
            gzip.GzipFile(fileobj=plain, mode="wb") as zipped,
        ):
            shutil.copyfileobj(process.stdout, zipped, 1 << 20)
        errors = process.stderr.read().decode(errors="replace")
    if process.returncode:
        raise CannotStart(f"pg_dump failed: {fault(errors)}")


def _pack(workdirs: Path, target: Path, recipients: Sequence[Any]) -> list[str]:
    """Encrypt the sessions' files. Returns those that could not be read: an agent may close files and folders of its session.

    A file that goes meanwhile is left out, and one that gets shorter ends in zeros. Raises OSError.
    """
    unreadable: list[str] = []

    def leave_out(error: OSError) -> None:
        path = Path(error.filename or workdirs).relative_to(workdirs)
        if isinstance(error, PermissionError) and len(path.parts) > 1:
            unreadable.append(str(path))
        elif not isinstance(error, FileNotFoundError | NotADirectoryError):
            raise error

    with _new(target) as file, sealed_files.encrypting(file, recipients) as plain, tarfile.open(fileobj=plain, mode="w|gz") as tar:
        for folder, folders, names in os.walk(workdirs, onerror=leave_out):
            if folder == str(workdirs) and LOST_AND_FOUND in folders:
                folders.remove(LOST_AND_FOUND)
            for path in (Path(folder, name) for name in (*folders, *names)):
                try:
                    _add(tar, path, str(path.relative_to(workdirs)))
                except OSError as error:
                    leave_out(error)
    return unreadable


def _add(tar: tarfile.TarFile, path: Path, name: str) -> None:
    """Add a file, folder or link. A file that cannot be opened leaves no trace, to which another hard link could refer."""
    if not stat.S_ISREG(path.lstat().st_mode):
        member = tar.gettarinfo(path, name)
        return tar.addfile(member) if member else None  # a socket has none
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as content:
        return tar.addfile(tar.gettarinfo(arcname=name, fileobj=content), _Padded(content))


class _Padded:
    """Reads a file, and zeros beyond its end: its size stands before its content, and it may get shorter meanwhile."""

    def __init__(self, content: IO[bytes]) -> None:
        self._content = content

    def read(self, size: int = 0, /) -> bytes:
        """Return `size` bytes."""
        return self._content.read(size).ljust(size, b"\0")


def _digests(folder: Path) -> dict[str, str]:
    digests = {}
    for name in (DATABASE, WORKDIRS):
        if (folder / name).exists():
            with (folder / name).open("rb") as file:
                digests[name] = hashlib.file_digest(file, "sha256").hexdigest()
    return digests


def _new(path: Path) -> IO[bytes]:
    """Open a new file that only this user can read."""
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")


def _write(path: Path, content: bytes) -> None:
    with _new(path) as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
