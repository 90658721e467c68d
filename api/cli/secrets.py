"""`assent secrets`: the keys that encrypt secrets in rows. These commands run beside the database."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, cast

import click

from api.cli.database import database_errors, use
from api.cli.main import data_dir

if TYPE_CHECKING:
    from models.database.encryption import Reader


@click.group()
def secrets() -> None:
    """Manage the keys that encrypt the secrets of webhooks, channels and providers, and the archive."""


@secrets.command("keys")
@click.argument("reader", type=click.Choice(["deliver", "turns", "archive"]))
def secrets_keys(reader: str) -> None:
    """Print a new pair of keys for READER, as environment variables: the kind of process that decrypts, or the archive."""
    from models.database.encryption import new_keys

    private, public = new_keys()
    click.echo(f"ASSENT_{reader.upper()}_PUBLIC_KEY={public}")
    click.echo(f"ASSENT_{reader.upper()}_PRIVATE_KEYS={private}")


@secrets.command("push")
def secrets_push() -> None:
    """Print a new pair of keys for push messages to browsers, as environment variables. A new pair ends all subscriptions."""
    from models.notices.push_keys import new_keys

    private, public = new_keys()
    click.echo(f"ASSENT_PUSH_PUBLIC_KEY={public}")
    click.echo(f"ASSENT_PUSH_PRIVATE_KEY={private}")


@secrets.command("rotate")
@click.argument("reader", type=click.Choice(["deliver", "turns", "archive"]))
@data_dir
def secrets_rotate(reader: str, data_dir: Path) -> None:
    """Encrypt all secrets of READER anew, or all parts of the archive, with the present public key.

    Safe to interrupt and to repeat.

    Needs the public and the private keys of READER, the former ones too, DATABASE_URL and DATABASE_SYSTEM_URL; for the archive also
    where its files are. Of an `assent up`, the keys are in its folder.
    """
    use(data_dir)
    use_keys(data_dir, reader)
    from models.operate.rotation import rotate

    with database_errors():
        rotated, failed = rotate(cast("Reader", reader))
    noun = "parts of the archive" if reader == "archive" else "secrets"
    click.echo(f"{rotated} {noun} were encrypted anew.")
    if failed:
        keys = f"ASSENT_{reader.upper()}_PRIVATE_KEYS"
        raise click.ClickException(
            f"{failed} {noun} cannot be decrypted: {keys} lacks their key, or they were changed or are missing."
        )


def use_keys(folder: Path, reader: str) -> None:
    """Use the keys of an `assent up`, unless the environment names others."""
    from models.database.encryption import public_of

    private, public = f"ASSENT_{reader.upper()}_PRIVATE_KEYS", f"ASSENT_{reader.upper()}_PUBLIC_KEY"
    file = folder / f"{reader}.key"
    if public not in os.environ and private not in os.environ and file.exists():
        keys = file.read_text("utf-8")
        os.environ[private], os.environ[public] = keys, public_of(keys.split()[0])
