"""`assent models`: lists and tests the providers, with the keys of this environment. Run the command where the turns run.

The console script belongs to `api`, which must not import providers: it names this file by text (`api.cli.main.ELSEWHERE`).
"""

import json
import os
import sys
import time
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from models.settings.providers import ProviderEntry

MOST_SHOWN = 20
as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")


@click.group(invoke_without_command=True)
@click.pass_context
def models(context: click.Context) -> None:
    """Models of the configured providers: list, test."""
    if context.invoked_subcommand is None:
        context.invoke(models_list, as_json=False)


@models.command("list")
@as_json
def models_list(as_json: bool) -> None:
    """Ask each provider for its models. The exit status is 1 if one does not respond."""
    rows = [_row_of(entry) for entry in _registry()]
    if as_json:
        click.echo(json.dumps(rows, indent=1))
    else:
        for row in rows:
            click.echo(f"{row['provider']}  ({row['kind']}, {row['base_url'] or 'default URL'}, key: {row['key']})")
            click.echo(f"  serves {', '.join(row['models'])}")
            click.echo(f"  {row['error'] or _models_in_words(row['listed'])}")
    sys.exit(1 if any(row["error"] for row in rows) else 0)


@models.command("test")
@click.argument("model")
@click.option("--provider", help="Default: the provider that serves the model.")
@as_json
def models_test(model: str, provider: str | None, as_json: bool) -> None:
    """Send a short request to a model. It costs a few tokens."""
    from models.settings import providers
    from workers.providers import ModelError, ModelRequest, provider_for

    _registry()
    entry = providers.provider_named(provider) if provider else providers.serving(model)
    if entry is None:
        raise click.ClickException(
            f"no provider {provider!r}" if provider else f"no provider serves {model!r}: see ASSENT_PROVIDERS"
        )
    prompt = {"role": "user", "content": [{"type": "text", "text": "Answer with the word OK."}]}
    request = ModelRequest(model=model, system=None, messages=[prompt], tools=[], max_tokens=1024)
    began = time.monotonic()
    try:
        reply = provider_for(entry, _key(entry)).ask(request, lambda _index, _text: None)
    except ModelError as error:
        raise click.ClickException(f"{entry.name}: {error}") from None
    text = " ".join(block["text"] for block in reply.content if block["type"] == "text")
    row = {"provider": entry.name, "model": reply.model or model, "seconds": round(time.monotonic() - began, 3)}
    row |= {"stop_reason": reply.stop_reason, "text": text[:200], "usage": asdict(reply.usage)}
    if as_json:
        click.echo(json.dumps(row, indent=1))
    else:
        click.echo(f"{row['model']} at {entry.name} answered in {row['seconds']} s ({reply.stop_reason}): {row['text']}")


def _row_of(entry: "ProviderEntry") -> dict[str, Any]:
    from workers.providers import ModelError, provider_for

    row = {"provider": entry.name, "kind": entry.kind, "base_url": entry.base_url, "models": entry.models}
    row |= {"key": _key_state(entry), "listed": [], "error": None}
    try:
        return row | {"listed": provider_for(entry, _key(entry)).models()}
    except ModelError as error:
        return row | {"error": str(error)}


def _registry() -> "tuple[ProviderEntry, ...]":
    from models.settings.providers import ProvidersMisconfigured, registry

    try:
        return registry()
    except ProvidersMisconfigured as error:
        raise click.ClickException(str(error)) from None


def _key(entry: "ProviderEntry") -> str | None:
    return os.environ.get(entry.api_key_env or "") or None


def _key_state(entry: "ProviderEntry") -> str:
    if not entry.api_key_env:
        return "none needed"
    return f"{entry.api_key_env} is {'set' if _key(entry) else 'not set'}"


def _models_in_words(names: list[str]) -> str:
    more = f" and {len(names) - MOST_SHOWN} more" if len(names) > MOST_SHOWN else ""
    return f"lists {', '.join(names[:MOST_SHOWN])}{more}" if names else "lists no models"
