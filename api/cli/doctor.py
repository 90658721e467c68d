"""`assent doctor`: what is stuck or misconfigured, for operators and monitors."""

import json
import os
from collections.abc import Iterator
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from api.cli.audit import use_with_key
from api.cli.database import database_errors
from api.cli.main import as_json, as_typed_here, data_dir, running_up
from api.cli.secrets import use_keys
from models.pure.text.relative_time import ago

if TYPE_CHECKING:
    from models.operate.doctor.finding import Finding

EXIT = {"info": 0, "warning": 1, "critical": 2}
"""The exit codes of monitors: OK, warning, critical."""


@click.command()
@click.option("--every-session", is_flag=True, help="Look at all sessions, and not only at those of the last hour.")
@click.option("--no-shell", is_flag=True, help="Leave out whether agents' commands can run on this machine.")
@data_dir
@as_json
def doctor(every_session: bool, no_shell: bool, data_dir: Path, as_json: bool) -> None:
    """Say what is stuck, since when, why, what will happen by itself, and what to do. Opens the database itself.

    Exit code 0: nothing to do. 1: a warning. 2: something is stuck or wrong.
    """
    _use(data_dir)
    from deploy.doctor import examine, versions
    from models.operate.doctor.finding import worst

    with database_errors():
        findings = examine(every_session=every_session, shell=not no_shell)
    level = worst(findings)
    if as_json:
        click.echo(json.dumps({"status": level, **versions(), "findings": list(map(asdict, findings))}, default=_time, indent=1))
    else:
        for line in _lines(findings):
            click.echo(line)
    raise SystemExit(EXIT[level])


def _use(folder: Path) -> None:
    """Use the servers and the keys of a running `assent up`, unless the environment names others."""
    use_with_key(folder)
    running = running_up(folder)
    if running:
        os.environ.setdefault("REDIS_URL", running["redis_url"])
        os.environ.setdefault("ASSENT_ENVIRONMENT", "development")
        for reader in ("deliver", "turns", "archive"):
            use_keys(folder, reader)


def _time(value: datetime) -> str:
    return value.isoformat()


def _lines(findings: "list[Finding]") -> Iterator[str]:
    """Yield the findings for people."""
    now = datetime.now(UTC)
    for finding in findings:
        count = f": {finding.count}" if finding.subjects or finding.workspaces else ""
        since = f", since {ago(finding.since, now)}" if finding.since else ""
        yield click.style(f"{finding.level}: {finding.title}{count}{since}", bold=True)
        yield f"  why        {as_typed_here(finding.why)}"
        yield f"  by itself  {as_typed_here(finding.by_itself)}"
        yield f"  to do      {as_typed_here(finding.to_do)}"
        if finding.subjects:
            more = ", ..." if finding.count > len(finding.subjects) else ""
            yield f"  which      {', '.join(finding.subjects)}{more}"
        if finding.workspaces:
            yield f"  workspace  {', '.join(finding.workspaces)}"
    if not any(finding.level != "info" for finding in findings):
        yield "Nothing is stuck."
