"""`assent audit`: verify, export and cut the audit. An auditor needs only an export and a public key, no database and no server."""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

import click

from api.cli.database import caller, database_errors, find_workspace, use, workspace
from api.cli.main import as_json, as_typed_here, data_dir

if TYPE_CHECKING:
    from models.audit.seal_key import PublicKey, SealKey
    from models.audit.signed_heads import SignedHeads
    from models.audit.verifying import AuditReport, Head

a_file = click.Path(exists=True, dir_okay=False, path_type=Path)
public_key = click.option(
    "--public-key",
    "public_keys",
    multiple=True,
    help="The public key of the seals: base64, or a PEM file. Repeat it after a change of keys.",
)

signed_since = click.option(
    "--signed-since", help="When the first key was configured, such as 2026-03-01: older seals may be unsigned."
)


@click.group()
def audit() -> None:
    """Verify, export, erase and cut the record of who did what. Opens the database itself, or a file."""


@audit.command("verify")
@click.option("--file", "file", type=a_file, help="An export; default: the database.")
@click.option("--head", "kept", type=a_file, help="An earlier output of `assent audit head --json`, which the chain must contain.")
@click.option(
    "--export", "exports", type=a_file, multiple=True, help="An export of acts that were cut: compare it with its anchor."
)
@signed_since
@public_key
@workspace
@data_dir
@as_json
def audit_verify(
    file: Path | None,
    kept: Path | None,
    exports: tuple[Path, ...],
    signed_since: str | None,
    public_keys: tuple[str, ...],
    workspace: str,
    data_dir: Path,
    as_json: bool,
) -> None:
    """Report acts that were changed, removed or cut off. Exit code 1 if there are any."""
    if file is None:
        use_with_key(data_dir)
    from models.audit import verifying

    keys = _keys(public_keys, own=file is None)
    facts: Expected = {
        "kept_head": _read_head(kept) if kept else None,
        "signed_since": _time(signed_since) if signed_since else None,
    }
    if file is None:
        with database_errors():
            workspace_id = find_workspace(workspace)
            report = verifying.verify(workspace_id, verifying.walk(workspace_id), keys, **facts)
            anchors = verifying.anchors_of(workspace_id) if exports else []
    else:
        with _reading(file), file.open(encoding="utf-8") as lines:
            workspace_id, items = verifying.read_export(iter(lines))
            report = verifying.verify(workspace_id, items, keys, **facts)
            lines.seek(0)
            anchors = verifying.anchors_in(verifying.read_export(iter(lines))[1]) if exports else []
    for each in exports:
        with _reading(each):
            verifying.check_export(report, each, anchors, keys)
    for line in [json.dumps(asdict(report) | {"intact": report.intact}, default=str, indent=1)] if as_json else _lines(report):
        click.echo(line if as_json else as_typed_here(line))
    raise SystemExit(0 if report.intact else 1)


@audit.command("export")
@click.option("--output", type=click.Path(dir_okay=False, path_type=Path), help="Default: standard output.")
@click.option("--without-texts", is_flag=True, help="Leave out people's texts: names, messages, rules. Their digests stay.")
@workspace
@data_dir
def audit_export(output: Path | None, without_texts: bool, workspace: str, data_dir: Path) -> None:
    """Write all acts, one JSON object per line, for `assent audit verify --file`."""
    use(data_dir)
    from models.audit import verifying
    from models.database import clock
    from models.database.transactions import transaction

    with database_errors():
        workspace_id = find_workspace(workspace)
        with transaction(workspace_id) as db:
            now = clock.now(db)
        with click.open_file(str(output or "-"), "w", encoding="utf-8", atomic=output is not None) as file:
            for line in verifying.export(workspace_id, now, texts=not without_texts):
                file.write(line)


@audit.command("cut")
@click.option(
    "--export", "file", type=a_file, required=True, help="An export with the acts. Keep it: it is all that is left of them."
)
@click.option("--reason", required=True, help="Why the acts are cut. The audit records it with your name.")
@click.confirmation_option(prompt="Is a copy of the export in a safe place?")
@signed_since
@workspace
@data_dir
def audit_cut(file: Path, reason: str, signed_since: str | None, workspace: str, data_dir: Path) -> None:
    """Cut acts that are older than the workspace keeps them (retention.audit_days), behind signed anchors.

    Cuts only acts that the export has, that are sealed, whose session is archived or deleted, and that are not on a legal hold. Run
    it where the sealer runs, with its key. The sweep deletes the acts once a seal covers the anchors.
    """
    use_with_key(data_dir)
    from models.audit.cutting import anchoring

    key = _own_key()
    with database_errors():
        workspace_id = find_workspace(workspace)
        with _reading(file):
            export = anchoring.read(workspace_id, file, _time(signed_since) if signed_since else None)
        click.echo(f"{file} is intact. Acts from before {export.before.isoformat()} are cut, as far as it has them.")
        with _signed_heads() as heads:
            terms = anchoring.anchor(export, caller(workspace_id), reason, key, heads)
    click.echo(f"{terms.acts} act(s) are cut behind {terms.anchors} anchor(s). The sweep deletes them after the next seal.")


@audit.command("erase")
@click.option("--chain", help="Acts of this session, or of the workspace by its id.")
@click.option("--seq", type=click.IntRange(1), help="Only this act of the chain.")
@click.option("--principal", help="Acts of this principal only, such as person:anna.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@workspace
@data_dir
def audit_erase(chain: str | None, seq: int | None, principal: str | None, yes: bool, workspace: str, data_dir: Path) -> None:
    """Erase people's texts from the audit: names, messages, rules. The audit records the erasure, and still verifies."""
    use(data_dir)
    from models.audit import erasing
    from models.database.transactions import transaction

    if not yes:
        click.confirm("Erased texts cannot be restored. Erase them?", abort=True)
    texts, has_more = 0, True
    with database_errors():
        workspace_id = find_workspace(workspace)
        while has_more:
            with transaction(workspace_id) as db:
                erasure = erasing.erase(db, caller(workspace_id), chain=chain, seq=seq, by=principal)
            texts, has_more = texts + erasure.texts, erasure.has_more
    on_hold = f" {erasure.on_hold} stay, since their sessions are on a legal hold." if erasure.on_hold else ""
    click.echo(f"{texts} text(s) erased.{on_hold}")


@audit.command("head")
@workspace
@data_dir
@as_json
def audit_head(workspace: str, data_dir: Path, as_json: bool) -> None:
    """Show the newest signed seal. Keep it out of reach of anybody who can write to the database."""
    use_with_key(data_dir)
    from models.audit import seal_key
    from models.audit.seals import SignedHead
    from models.database.transactions import transaction

    with database_errors():
        workspace_id = find_workspace(workspace)
        with transaction(workspace_id) as db:
            head = SignedHead.newest(db, workspace_id)
    if head is None:
        raise click.ClickException("no seal is signed yet: set ASSENT_AUDIT_KEY_FILE, and have beat and the workers run")
    keys = [key.text for key in seal_key.trusted_keys() if key.id == head.key_id]
    fields = asdict(head) | {"public_key": keys[0] if keys else None}
    click.echo(
        json.dumps(fields, default=str, indent=1) if as_json else "\n".join(f"{name:12}  {value}" for name, value in fields.items())
    )


@audit.command("key")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
def audit_key(file: Path) -> None:
    """Write a new key that signs seals to FILE, for ASSENT_AUDIT_KEY_FILE, and FILE.heads for the sealer. Print the public key."""
    from models.audit import seal_key, signed_heads

    private = seal_key.make()
    try:
        with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="ascii") as new:
            new.write(private + "\n")
        signed_heads.make(signed_heads.beside(file))
    except OSError as error:
        raise click.ClickException(f"{file}: {error.strerror}") from None
    except signed_heads.NoHeads as error:
        raise click.ClickException(str(error)) from None
    click.echo(seal_key.read_private(private).public.text)


@audit.command("adopt")
@click.option("--reason", required=True, help="Why the audit is accepted as it is. The audit records it with your name.")
@click.option("--workspace", help="Id or name.  [default: all]")
@click.option("--yes", is_flag=True, help="Do not ask.")
@data_dir
def audit_adopt(reason: str, workspace: str | None, yes: bool, data_dir: Path) -> None:
    """Let the sealer continue from the database's present state. A signed act records who did so, and why.

    For the first start with a key that `assent audit key` did not create, a lost file of signed heads, and a restored backup. Run
    it where the sealer runs, with its key, after `assent audit verify`.
    """
    use_with_key(data_dir)
    from models.audit import adoption, signed_heads

    key = _own_key()
    with database_errors():
        text = adoption.reason_text(reason)
        workspace_ids = [find_workspace(workspace)] if workspace else adoption.workspaces()
        with _heads_errors():
            file = signed_heads.path()
        click.echo(f"The sealer will sign the present audit of {len(workspace_ids)} workspace(s). Its heads are in {file}.")
        if not yes:
            click.confirm("Have you verified that audit?", abort=True)
        with _signed_heads(make_anew=True) as heads:
            for workspace_id, head in heads.each():
                if not workspace and workspace_id not in workspace_ids:
                    heads.forget(workspace_id)
                    click.echo(f"{workspace_id}: the database has no such workspace; the kept head was act {head[0]}, {head[1]}")
            for workspace_id in workspace_ids:
                before, now = adoption.adopt(caller(workspace_id), text, key, heads)
                was = f"act {before[0]}, {before[1]}" if before else "none"
                click.echo(f"{workspace_id}: the kept head was {was}; now it is act {now[0]}, {now[1]}")


@contextmanager
def _signed_heads(*, make_anew: bool = False) -> "Iterator[SignedHeads]":
    """Open the file of signed heads, as `signed_heads.open_file` does."""
    from models.audit import signed_heads

    with _heads_errors(), signed_heads.open_file(signed_heads.path(), make_anew=make_anew, seconds=10) as heads:
        yield heads


@contextmanager
def _heads_errors() -> Iterator[None]:
    from models.audit import signed_heads

    try:
        yield
    except signed_heads.InUse:
        raise click.ClickException("the sealer is busy: stop the process `sweeps`, then try again") from None
    except signed_heads.NoHeads as error:
        raise click.ClickException(str(error)) from None


@contextmanager
def _reading(file: Path) -> Iterator[None]:
    """Name the file in the errors of reading it as an export."""
    from models.audit import verifying
    from models.audit.cutting.export import NotIntact

    try:
        yield
    except (verifying.NoExport, UnicodeDecodeError) as error:
        raise click.ClickException(f"{file}: {error}") from None
    except NotIntact as error:
        raise click.ClickException("\n".join([f"{file}: {error}", *_lines(error.report)])) from None


class Expected(TypedDict):
    """Facts that the auditor knows from another source."""

    kept_head: "Head | None"
    signed_since: datetime | None


def _time(text: str) -> datetime:
    """Return the time of a text in ISO 8601; UTC if the text has no offset."""
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise click.ClickException(f"--signed-since: {text!r} is not a time: use 2026-03-01 or 2026-03-01T12:00:00+00:00") from None
    return at if at.tzinfo else at.replace(tzinfo=UTC)


def use_with_key(folder: Path) -> None:
    """Use the database of a running `assent up`, and the key in its folder."""
    use(folder)
    key_file = folder / "audit.key"
    if key_file.exists() and not os.environ.keys() & {"ASSENT_AUDIT_KEY", "ASSENT_AUDIT_KEY_FILE"}:
        os.environ["ASSENT_AUDIT_KEY_FILE"] = str(key_file)


def _own_key() -> "SealKey":
    """Return this installation's private key."""
    from models.audit import seal_key

    try:
        key = seal_key.own()
    except (OSError, ValueError) as error:
        raise click.ClickException(f"the key: {error}") from None
    if key is None:
        raise click.ClickException("this needs the sealer's key: set ASSENT_AUDIT_KEY or ASSENT_AUDIT_KEY_FILE")
    return key


def _keys(options: tuple[str, ...], *, own: bool) -> "list[PublicKey]":
    """Return the keys whose signatures count: those of `--public-key`, else, with `own`, this installation's."""
    from models.audit import seal_key

    try:
        if options or not own:
            return [seal_key.read_public(Path(key).read_text("ascii") if Path(key).is_file() else key) for key in options]
        return seal_key.trusted_keys()
    except (OSError, ValueError) as error:
        raise click.ClickException(f"the key: {error}") from None


def _read_head(file: Path) -> "Head":
    from models.audit.verifying import Head

    try:
        fields: dict[str, Any] = json.loads(file.read_text("utf-8"))
        return Head(str(fields["workspace_id"]), int(fields["seq"]), str(fields["hash"]))
    except (ValueError, KeyError, TypeError):
        raise click.ClickException(f"{file} is not an output of `assent audit head --json`") from None


def _lines(report: "AuditReport") -> Iterator[str]:
    """Yield the report's lines, for people."""
    yield f"{report.acts} acts in {report.chains} chains of workspace {report.workspace_id}, {report.seals} seals."
    for problem in report.problems:
        yield f"{problem.kind}: {problem.message}"
    if report.problems_found > len(report.problems):
        yield f"... and {report.problems_found - len(report.problems)} more."
    if report.signed:
        signed_head = report.signed
        yield f"Signed up to act {signed_head.seq} of the workspace's chain, {signed_head.at.isoformat()}, by {signed_head.key_id}."
    yield from report.notes
    yield "Intact." if report.intact else f"NOT INTACT: {report.problems_found} problem(s)."
