"""`assent upgrade check`: what an upgrade takes. docs/upgrading.md has the steps."""

import json
import os
from dataclasses import asdict
from pathlib import Path

import click

from api.cli.database import database_errors, use
from api.cli.main import as_json, as_typed_here, data_dir


@click.group()
def upgrade() -> None:
    """Prepare an upgrade to this release."""


@upgrade.command("check")
@data_dir
@as_json
def upgrade_check(data_dir: Path, as_json: bool) -> None:
    """Say which migrations `assent migrate` would run, and whether the running processes must stop. Changes nothing.

    Run it with the new release, with DATABASE_OWNER_URL. Exit code 1 if something must be repaired before.
    """
    use(data_dir)
    from deploy.folder import CannotStart
    from deploy.upgrading import plan

    url = os.environ.get("DATABASE_OWNER_URL")
    if not url:
        raise click.ClickException("DATABASE_OWNER_URL is not set: set it to the URL of the role assent_owner")
    with database_errors():
        try:
            steps = plan(url)
        except CannotStart as refused:
            raise click.ClickException(str(refused)) from refused
    if as_json:
        click.echo(json.dumps(asdict(steps), indent=1))
    else:
        click.echo(f"The schema is {steps.present or 'missing'}; Assent {steps.release} has {steps.target}.")
        for line in steps.migrations:
            click.echo(f"  {line}")
        if steps.needs_backup:
            click.echo(as_typed_here("1. Make a backup: `assent backup make FOLDER`."))
            stop = "Stop all processes: they do not work with the new schema. Then" if steps.downtime else "Without a downtime,"
            click.echo(as_typed_here(f"2. {stop} run `assent migrate` with this release."))
            click.echo("3. Start the new processes." if steps.downtime else "3. Replace the processes.")
        elif not steps.migrations:
            click.echo("Nothing to migrate: replace the processes in any order.")
        for problem in steps.problems:
            click.echo(click.style(f"Before: {problem}", bold=True))
    raise SystemExit(1 if steps.problems else 0)
