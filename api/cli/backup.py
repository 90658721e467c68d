"""`assent backup` and `assent restore`. They need the database's owner and Postgres' own programs: see docs/backups.md."""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from api.cli.audit import use_with_key
from api.cli.database import DATABASE_URLS, caller, database_errors
from api.cli.main import as_json, as_typed_here, data_dir
from models.pure.times import rfc3339

if TYPE_CHECKING:
    from deploy.backup import Manifest
    from deploy.restore import Gap
    from models.operate.restoration import State

a_folder = click.Path(file_okay=False, path_type=Path)
workdirs = click.option("--workdirs", type=a_folder, help="The sessions' files.  [default: ASSENT_WORKDIR_ROOT]")
without_files = click.option("--without-files", is_flag=True, help="Leave out the sessions' files.")


@click.group()
def backup() -> None:
    """Make encrypted backups of the database and of the sessions' files."""


@backup.command("key")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
def backup_key(file: Path) -> None:
    """Write a new identity, which decrypts backups, to FILE, and print its recipient. Keep FILE away from the installation."""
    from deploy.sealed_files import new_key

    identity, recipient = new_key()
    try:
        with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="ascii") as new:
            new.write(f"# recipient: {recipient}\n{identity}\n")
    except OSError as error:
        raise click.ClickException(f"{file}: {error.strerror}") from None
    click.echo(recipient)


@backup.command("make")
@click.argument("folder", type=a_folder)
@click.option(
    "--recipient",
    "recipients",
    multiple=True,
    required=True,
    envvar="ASSENT_BACKUP_RECIPIENTS",
    help="Whoever may decrypt: age1...",
)
@workdirs
@without_files
@data_dir
@as_json
def backup_make(folder: Path, recipients: tuple[str, ...], data_dir: Path, as_json: bool, **files: Any) -> None:
    """Write an encrypted backup to the new folder FOLDER, while everything runs. Opens the database as its owner."""
    use_with_key(data_dir)
    from deploy.backup import make

    with _errors():
        manifest, unreadable = make(folder, _owner_url(), recipients, _workdirs(data_dir, **files))
    if as_json:
        click.echo(json.dumps(asdict(manifest) | {"folder": str(folder), "unreadable": unreadable}, indent=1))
        return
    click.echo(f"{folder}: the backup of {manifest.taken_at}, {', '.join(manifest.sha256)}.")
    if unreadable:
        names = f"{', '.join(unreadable[:20])}{' ...' if len(unreadable) > 20 else ''}"
        click.echo(f"Not in it: {len(unreadable)} file(s) and folder(s) of sessions that cannot be read: {names}.", err=True)
    click.echo("Not in it: keys and settings, and the audit's file of signed heads. Keep those elsewhere.", err=True)


@click.command()
@click.argument("folder", type=a_folder, required=False)
@click.option("--identity", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="The file of `assent backup key`.")
@click.option("--reason", help="Why the backup is restored. The audit records it with your name.")
@click.option("--workers-stopped-at", help="All workers were stopped then and have run nothing since, such as 2026-03-01T12:00Z.")
@click.option("--replace", is_flag=True, help="Replace a database that has tables. Its rows are lost.")
@workdirs
@without_files
@click.option("--resume", is_flag=True, help="End the halts, after a restore.")
@click.option("--end-runs", is_flag=True, help="With --resume: end the runs whose model would be asked again.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@data_dir
@as_json
def restore(folder: Path | None, resume: bool, yes: bool, data_dir: Path, as_json: bool, **options: Any) -> None:
    """Load a backup. Every workspace is halted until `assent restore --resume`. Stop all processes but the database before."""
    use_with_key(data_dir)
    with _errors():
        if resume:
            root = _workdirs(data_dir, options["workdirs"], without_files=options["without_files"])
            _resume(root, yes=yes, end_runs=options["end_runs"])
        elif folder is None:
            raise click.UsageError("name the folder of a backup, or pass --resume")
        else:
            _restore(folder, data_dir, yes=yes, as_json=as_json, options=options)


def _restore(folder: Path, data_dir: Path, *, yes: bool, as_json: bool, options: dict[str, Any]) -> None:
    from deploy import restore
    from deploy.checks import place
    from deploy.sealed_files import identities_in

    identity, reason = options["identity"], options["reason"]
    if not identity or not (reason or "").strip():
        raise click.UsageError("--identity and --reason are needed: the key of the backup, and why it is restored")
    stopped_at = _time(options["workers_stopped_at"])
    identities = identities_in(identity)
    restore.check_urls({variable: os.environ.get(variable) for variable in DATABASE_URLS})
    owner_url = _owner_url()
    manifest = restore.check(folder, owner_url, replace=options["replace"])
    doubts_calls = stopped_at is None or stopped_at > manifest.at
    if options["replace"] and not yes:
        click.confirm(f"All rows of the database {place(owner_url)} will be lost. Replace it?", abort=True)
    root = _workdirs(data_dir, options["workdirs"], without_files=options["without_files"])
    if root:
        restore.unpack(folder, root, identities)
    restore.load(folder, manifest, owner_url, identities, doubts_calls=doubts_calls)
    if root:
        restore.place_files(root)
    gaps, trouble = _compare()
    _settle(gaps, reason)
    _tell(manifest, gaps, trouble, as_json=as_json)


def _compare() -> "tuple[list[Gap], str]":
    """Return the gaps of the audit, and why they are unknown, if so."""
    from deploy.restore import compare_heads
    from models.audit import signed_heads

    try:
        return compare_heads(), ""
    except signed_heads.NoHeads as error:
        return [], str(error)


def _settle(gaps: "list[Gap]", reason: str) -> None:
    from models.operate import restoration

    for gap in gaps:
        restoration.doubt_calls(gap.workspace_id)
    for state in restoration.states():
        restoration.settle(state, caller(state.workspace_id), reason)


def _tell(manifest: "Manifest", gaps: "list[Gap]", trouble: str, *, as_json: bool) -> None:
    """Print what was restored, and what the operator must confirm."""
    from models.operate import restoration

    states = restoration.states()
    confirm = {state.workspace_id: restoration.to_confirm(state.workspace_id) for state in states}
    at_work = {state.workspace_id: restoration.at_work(state.workspace_id) for state in states}
    if as_json:
        report = {"backup_at": rfc3339(manifest.at), "gaps": list(map(asdict, gaps)), "audit": trouble, "to_confirm": confirm}
        click.echo(json.dumps(report | {"at_work": at_work}, default=str, indent=1))
        return
    click.echo(
        f"Restored from the backup of {manifest.taken_at}. {len(states)} workspace(s) are halted, and all sign-ins have ended."
    )
    for gap in gaps:
        missing = f"{gap.acts} act(s) are missing" if gap.acts else "the backup has another chain"
        click.echo(f"audit of {gap.workspace_id}: {missing}")
    if trouble:
        click.echo(f"The audit was not compared with the file of signed heads: {trouble}")
    for line in _lines(states):
        click.echo(line)
    click.echo(as_typed_here("Then start `web`, decide what waits, and run `assent restore --resume`."))
    if gaps or trouble:
        adopt = "Unless this is a trial, sign the audit's gap before `sweeps` starts: `assent audit adopt --reason ...`."
        click.echo(as_typed_here(adopt))


def _lines(states: "list[State]") -> Iterator[str]:
    """Yield what holds again, for people."""
    from models.operate import restoration

    for state in states:
        rows, session_ids = restoration.to_confirm(state.workspace_id), restoration.at_work(state.workspace_id)
        yield f"{state.workspace_id}: confirm that these still hold, or revoke them:"
        yield from (f"  {row['kind']:10}  {row['id']}  {row['what']}" for row in rows)
        if session_ids:
            yield f"  {len(session_ids)} session(s) ask their model again, which may propose anew what it did after the backup:"
            yield f"  {', '.join(session_ids[:20])}{' ...' if len(session_ids) > 20 else ''}. `--resume --end-runs` ends them."


def _resume(root: Path | None, *, yes: bool, end_runs: bool) -> None:
    """End the halts, once the operator has confirmed what holds. Finishes a restore that was interrupted after the load."""
    from deploy.restore import place_files
    from models.operate import restoration

    states = restoration.states()
    if not states:
        raise click.ClickException("nothing waits for a resume: no workspace is halted by a restore")
    if root:
        place_files(root)
    for state in states:
        restoration.settle(state, caller(state.workspace_id), "the restore was interrupted, and is finished by the resume")
    for line in _lines(states):
        click.echo(line)
    if not yes:
        click.confirm("Have you confirmed all of this?", abort=True)
    for state in states:
        if end_runs:
            restoration.end_runs(state.workspace_id, caller(state.workspace_id))
        restoration.resume(state, caller(state.workspace_id))
    click.echo(f"{len(states)} workspace(s) go on.")


@contextmanager
def _errors() -> Iterator[None]:
    """Turn the refusals of the steps into errors of one line."""
    from deploy.folder import CannotStart

    with database_errors():
        try:
            yield
        except CannotStart as refused:
            raise click.ClickException(str(refused)) from refused
        except OSError as error:
            fault = error.strerror or str(error)
            raise click.ClickException(f"{error.filename}: {fault}" if error.filename else fault) from error


def _owner_url() -> str:
    url = os.environ.get("DATABASE_OWNER_URL")
    if not url:
        raise click.ClickException("DATABASE_OWNER_URL is not set: set it to the URL of the role assent_owner")
    return url


def _workdirs(data_dir: Path, workdirs: Path | None, *, without_files: bool) -> Path | None:
    """Return the folder of the sessions' files: that of the option or setting, or that of an `assent up`. None: without them."""
    if without_files:
        return None
    variable = os.environ.get("ASSENT_WORKDIR_ROOT")
    return workdirs or (Path(variable) if variable else data_dir / "workdirs")


def _time(text: str | None) -> datetime | None:
    if text is None:
        return None
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise click.UsageError(f"--workers-stopped-at: {text!r} is not a time: use 2026-03-01T12:00:00+00:00") from None
    return at if at.tzinfo else at.replace(tzinfo=UTC)
