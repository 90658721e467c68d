"""`assent environment`: the variables of an installation, and of each of its processes."""

import os
import re
import secrets
import sys
from pathlib import Path

import click

_NAME = re.compile(r"(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)=(.*)", re.DOTALL)


@click.group()
def environment() -> None:
    """Make the variables of an installation, and divide them among its processes."""


@environment.command("new")
def environment_new() -> None:
    """Print the secrets of a new installation, as an environment file. Fill in the model's key, and keep the file secret."""
    from models.audit import seal_key
    from models.database.encryption import new_keys
    from models.notices import push_keys

    private = seal_key.make()
    passwords = [f"ASSENT_{name}_PASSWORD" for name in ("POSTGRES", "OWNER", "APP", "SYSTEM", "REDIS")]
    variables = {name: secrets.token_hex(24) for name in passwords}
    variables["FLOWER_BASIC_AUTH"] = f"assent:{secrets.token_hex(16)}"
    variables["ASSENT_AUDIT_KEY"] = private.strip()
    variables["ASSENT_AUDIT_PUBLIC_KEYS"] = seal_key.read_private(private).public.text
    for reader in ("DELIVER", "TURNS", "ARCHIVE"):
        variables[f"ASSENT_{reader}_PRIVATE_KEYS"], variables[f"ASSENT_{reader}_PUBLIC_KEY"] = new_keys()
    variables["ASSENT_PUSH_PRIVATE_KEY"], variables["ASSENT_PUSH_PUBLIC_KEY"] = push_keys.new_keys()
    variables["ASSENT_PUSH_CONTACT"] = ""
    variables |= {"ANTHROPIC_API_KEY": "", "ASSENT_PUBLIC_URL": "http://localhost:8000"}
    for name, value in variables.items():
        click.echo(f"{name}={value}")


@environment.command("of")
@click.argument("process")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=Path), default="-")
@click.option(
    "--providers",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    envvar="ASSENT_PROVIDERS",
    help="The registry of providers, which names their keys. Default: ASSENT_PROVIDERS of FILE.",
)
def environment_of(process: str, file: Path, providers: Path | None) -> None:
    """Print those lines of an environment file that PROCESS of the Procfile, or `migrate`, needs. FILE is one of all variables."""
    from models.settings import variables

    if process not in (*variables.PROCESSES, "migrate"):
        raise click.BadParameter(f"must be one of {', '.join(variables.PROCESSES)}, migrate", param_hint="PROCESS")
    lines = _read(file)
    _use_registry(str(providers or lines.get("ASSENT_PROVIDERS", "")))
    for name, value in lines.items():
        needs = name == "DATABASE_OWNER_URL" if process == "migrate" else process in variables.holders(name)
        if needs and value:
            click.echo(f"{name}={value}")


def _read(file: Path) -> dict[str, str]:
    """Return the variables of an environment file. Quotes around a value are none of its characters, as for a shell and Compose."""
    lines = {}
    for line in (sys.stdin.read() if str(file) == "-" else file.read_text("utf-8")).splitlines():
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        entry = _NAME.fullmatch(text)
        if entry is None:
            raise click.ClickException(f"{file}: a line is not NAME=VALUE: put each variable on one line")
        name, value = entry.groups()
        lines[name] = value[1:-1] if re.fullmatch(r"'[^']*'|\"[^\"]*\"", value) else value
    return lines


def _use_registry(path: str) -> None:
    """Use this registry of providers, none for an empty path. Exits with one line if it cannot be used."""
    from models.settings import settings
    from models.settings.providers import ProvidersMisconfigured, registry

    os.environ["ASSENT_PROVIDERS"] = path
    if not path:
        del os.environ["ASSENT_PROVIDERS"]
    settings.cache_clear()
    try:
        registry()
    except ProvidersMisconfigured as error:
        raise click.ClickException(f"{error}. Name the file on this machine by --providers") from None
