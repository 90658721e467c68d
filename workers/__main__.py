"""Runs Celery's worker or beat for this app: `python -m workers worker ...`, with the options of `celery -A workers worker`.

The command `celery` first imports all its subcommands, those of plug-ins such as Flower included: a sixth of a worker's start.
"""

import os
from typing import TYPE_CHECKING

from models.operate import garbage_collection

if TYPE_CHECKING:
    import click


def commands() -> "click.Group":
    """Return the command with its subcommands. Celery is imported here, when the garbage collector is paused."""
    import click
    from celery.bin.base import CLIContext
    from celery.bin.beat import beat
    from celery.bin.worker import worker

    from workers.celery import app, leave_out_tasks

    @click.group(commands={"worker": worker, "beat": beat})
    @click.pass_context
    def main(context: click.Context) -> None:
        """Run a worker, or beat, without a banner."""
        if context.invoked_subcommand == "beat":
            leave_out_tasks()
        context.obj = CLIContext(app=app, no_color=bool(os.environ.get("NO_COLOR")), workdir=None, quiet=True)

    return main


if __name__ == "__main__":
    garbage_collection.pause()
    commands()(prog_name="python -m workers", auto_envvar_prefix="CELERY")
