"""`assent restore`: loads a backup, so that nothing begins before an operator has looked at it. docs/backups.md has the steps."""

import gzip
import os
import shutil
import subprocess
import tarfile
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import psycopg

from deploy import sealed_files
from deploy.backup import DATABASE, LOST_AND_FOUND, SCHEMA, WORKDIRS, Manifest
from deploy.checks import check_owner, check_running_role, place
from deploy.folder import CannotStart
from deploy.postgres_tools import Address, fault, program
from models.audit import adoption, signed_heads
from models.audit.seals import Head
from models.database import revisions
from models.database.transactions import transaction
from models.operate import restoration

_TABLES = f"SELECT count(*) FROM pg_class WHERE relnamespace = '{SCHEMA}'::regnamespace AND relkind IN ('r', 'p')"  # noqa: S608
# The dump creates the schema. Functions of assent_definer need its right to create there, while they are loaded.
_BEFORE = f"""
BEGIN;
DROP SCHEMA {SCHEMA} CASCADE;
CREATE SCHEMA {SCHEMA};
GRANT USAGE ON SCHEMA {SCHEMA} TO PUBLIC;
GRANT CREATE ON SCHEMA {SCHEMA} TO assent_definer;
"""
_AFTER = f"""
;
SET search_path = {SCHEMA};
REVOKE CREATE ON SCHEMA {SCHEMA} FROM assent_definer;
"""
_CREATES_SCHEMA = (f"CREATE SCHEMA {SCHEMA};".encode(), b"ALTER SCHEMA public OWNER TO ", b"COMMENT ON SCHEMA public IS ")
"""Beginnings of lines of the dump that repeat what `_BEFORE` does."""


@dataclass(frozen=True)
class Gap:
    """A workspace whose audit in the backup ends before the last head that was kept outside the database."""

    workspace_id: str
    acts: int | None
    """Acts that are missing. None: the backup's chain is another one."""


def check_urls(urls: Mapping[str, str | None]) -> None:
    """Raise CannotStart unless the URLs are all there, and are those of three roles of one database. `urls`: by their variables."""
    missing = [variable for variable, url in urls.items() if not url]
    if missing:
        raise CannotStart(f"{' and '.join(missing)} not set: a restore needs the database's URL for each of three roles")
    databases = {}
    for variable, url in urls.items():
        assert url, "none is missing"
        (check_owner if variable == "DATABASE_OWNER_URL" else check_running_role)(variable, url)
        with psycopg.connect(url, connect_timeout=3) as db:
            databases[variable] = db.execute(_DATABASE).fetchone()
    if len(set(databases.values())) > 1:
        places = ", ".join(f"{variable} to {place(url or '')}" for variable, url in urls.items())
        raise CannotStart(f"the three URLs do not lead to one database: {places}")


_DATABASE = "SELECT system_identifier, current_database() FROM pg_control_system()"


def check(folder: Path, owner_url: str, *, replace: bool) -> Manifest:
    """Return the manifest of a backup that can be loaded into this database. Raises CannotStart, psycopg.Error."""
    manifest = Manifest.read(folder)
    program("psql", manifest.postgres)
    newest = max(file.name[:4] for file in revisions.SCRIPTS.glob("versions/[0-9]*.py"))
    if manifest.revision != newest:
        raise CannotStart(
            f"the backup has the schema {manifest.revision}, and this release {newest}: restore it with Assent {manifest.release}, "
            "then upgrade"
        )
    with psycopg.connect(owner_url, connect_timeout=3) as db:
        [(tables,)] = db.execute(_TABLES.encode()).fetchall()
    if tables and not replace:
        raise CannotStart(f"the database has {tables} tables: restore into a new one (`assent roles`), or pass --replace")
    return manifest


def load(folder: Path, manifest: Manifest, owner_url: str, identities: Sequence[Any], *, doubts_calls: bool) -> None:
    """Replace the database by that of the backup, in one transaction at whose commit every workspace is halted.

    `doubts_calls`: as for `restoration.after_load`. Raises CannotStart; then the database is as before.
    """
    address = Address.of(owner_url)
    psql = program("psql", manifest.postgres)
    words = [psql, "-X", "--quiet", "--no-password", "-v", "ON_ERROR_STOP=1", "-f", "-", *address.words]
    with subprocess.Popen(  # noqa: S603 - no shell
        words, env=address.env, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    ) as process:
        assert process.stdin, "a pipe"
        assert process.stderr, "a pipe"
        messages = _Reader(process.stderr)
        try:
            process.stdin.write(_BEFORE.encode())
            with sealed_files.decrypting(folder / DATABASE, identities) as plain, gzip.GzipFile(fileobj=plain) as dump:
                _copy_dump(dump, process.stdin)
            # Only a dump that was decrypted to its proven end gets a COMMIT.
            last = _AFTER + restoration.after_load(manifest.at, doubts_calls=doubts_calls) + "COMMIT;\n"
            process.stdin.write(last.encode())
        except BrokenPipeError:
            pass  # psql ended: its message says why
        except BaseException:
            process.kill()
            raise
        finally:
            with suppress(BrokenPipeError):
                process.stdin.close()  # what is still buffered may have no reader
        process.wait()
        reason = fault(messages.text())
    if process.returncode:
        raise CannotStart(f"psql failed, and the database is as before: {reason}")
    with psycopg.connect(owner_url, connect_timeout=3, autocommit=True) as db:
        db.execute("ANALYZE")  # a dump has no statistics, without which Postgres chooses bad plans


def _copy_dump(dump: gzip.GzipFile, target: IO[bytes]) -> None:
    """Copy the dump without the statements that create the schema, which stand before its first table."""
    for line in dump:
        if not line.startswith(_CREATES_SCHEMA):
            target.write(line)
        if line.startswith(b"CREATE TABLE"):
            break
    shutil.copyfileobj(dump, target, 1 << 20)


class _Reader:
    """Reads a stream to its end beside the caller, so that its writer never waits."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._content = b""
        self._stream = stream
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        self._content = self._stream.read()

    def text(self) -> str:
        """Return what was written, once the writer has ended."""
        self._thread.join()
        return self._content.decode(errors="replace")


def unpack(folder: Path, workdirs: Path, identities: Sequence[Any]) -> None:
    """Write the sessions' files of a backup into a hidden folder of an empty or missing one, if it has any.

    `place_files` moves them: the folder itself may be a mount, which cannot be renamed. Raises CannotStart, OSError.
    """
    if not (folder / WORKDIRS).exists():
        return
    new = workdirs / f"{_RESTORED}.part"
    if workdirs.exists() and {path.name for path in workdirs.iterdir()} - {new.name, _RESTORED, LOST_AND_FOUND}:
        raise CannotStart(f"{workdirs} is not empty: empty it, name another folder by --workdirs, or pass --without-files")
    for path in (new, workdirs / _RESTORED):
        if path.exists():
            shutil.rmtree(path)
    workdirs.mkdir(mode=0o700, parents=True, exist_ok=True)
    new.mkdir(mode=0o700)
    with sealed_files.decrypting(folder / WORKDIRS, identities) as plain, tarfile.open(fileobj=plain, mode="r|gz") as tar:
        tar.extractall(new, _inside(tar, new), **_AS_CHECKED)  # noqa: S202 - `_inside` refuses what would be written outside
        plain.read()  # to the proven end
    new.rename(workdirs / _RESTORED)


def place_files(workdirs: Path) -> None:
    """Move the files of `unpack` to where they belong, if there are any."""
    new = workdirs / _RESTORED
    if new.exists():
        for path in new.iterdir():
            path.rename(workdirs / path.name)
        new.rmdir()


_RESTORED = ".restored"
"""The folder below the sessions' files in which a backup's files wait until its database is loaded."""


_AS_CHECKED: dict[str, Any] = {"filter": "fully_trusted"} if hasattr(tarfile, "fully_trusted_filter") else {}
"""`_inside` has checked the members. Python before 3.11.4, such as Debian 12's, knows no filters."""


def _inside(members: Iterable[tarfile.TarInfo], folder: Path) -> Iterator[tarfile.TarInfo]:
    """Yield each member once those before it are written, with no more rights than `rwxr-xr-x`. Links may lead anywhere.

    Raises CannotStart for one that would be written outside of the folder, also by a link that was written before.
    """
    for member in members:
        if not Path(os.path.realpath(folder / member.name)).is_relative_to(os.path.realpath(folder)):
            raise CannotStart(
                f"the backup has a file {member.name!r}, which leads outside of its folder: it is not one of Assent's"
            )
        member.mode &= 0o755
        yield member


def compare_heads() -> list[Gap]:
    """Compare each workspace's audit with the file of signed heads. Raises signed_heads.NoHeads.

    The file is only read: it may be that of an installation that runs, beside which this restore is a trial.
    """
    heads = signed_heads.read(signed_heads.path())
    present = set(adoption.workspaces())
    gaps = []
    for workspace_id, head in heads.each():
        gap = _gap(workspace_id, head) if workspace_id in present else Gap(workspace_id, head[0])
        gaps += [gap] if gap else []
    return gaps


def _gap(workspace_id: str, head: Head) -> Gap | None:
    with transaction(workspace_id) as db:
        rows = db.rows(_ACT, workspace=workspace_id, seq=head[0])
        last = db.value("SELECT max(seq) FROM audit WHERE chain = %(workspace)s", workspace=workspace_id) or 0
    if rows and rows[0][0] == head[1]:
        return None
    return Gap(workspace_id, head[0] - last if head[0] > last else None)


_ACT = "SELECT encode(hash, 'hex') FROM audit WHERE chain = %(workspace)s AND seq = %(seq)s"
