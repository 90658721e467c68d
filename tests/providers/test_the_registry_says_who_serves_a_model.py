"""ASSENT_PROVIDERS names a file of providers. Each process checks the file when it starts, and names a fault's entry and field."""

import os
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from models.settings import providers, settings
from models.settings.variables import environment_of, holders, refuse_needless
from workers.celery import check_worker

LOCAL = {
    "name": "local",
    "kind": "openai",
    "base_url": "http://127.0.0.1:9000/v1",
    "api_key_env": "LOCAL_KEY",
    "models": ["llama-*"],
}
CLAUDE = {"name": "claude", "kind": "anthropic", "api_key_env": "ANTHROPIC_API_KEY", "models": ["claude-*", "llama-4"]}
WriteRegistry = Callable[..., None]


def test_without_a_file_anthropic_serves_every_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ASSENT_PROVIDERS", raising=False)
    settings.cache_clear()
    [entry] = providers.registry()
    assert (entry.name, entry.kind, entry.api_key_env) == ("anthropic", "anthropic", "ANTHROPIC_API_KEY")
    assert providers.serving("any-model") == entry


def test_the_first_entry_with_a_matching_glob_serves_a_model(write_registry: WriteRegistry) -> None:
    write_registry(LOCAL, CLAUDE)
    served = {model: providers.serving(model) for model in ("llama-4", "claude-opus-5-5", "gpt-5.5")}
    assert {model: entry and entry.name for model, entry in served.items()} == {
        "llama-4": "local",
        "claude-opus-5-5": "claude",
        "gpt-5.5": None,
    }
    other = providers.serving("llama-4", {"local"})
    assert other
    assert other.name == "claude"
    assert providers.serving("llama-3", {"local"}) is None


FAULTS: dict[str, tuple[Any, str]] = {
    "an unknown kind": ({**LOCAL, "kind": "gemini"}, "providers[0] (local): kind: Input should be 'anthropic' or 'openai'"),
    "an unknown field": ({**LOCAL, "url": "x"}, "providers[0] (local): url: Extra inputs are not permitted"),
    "no models": ({**LOCAL, "models": []}, "providers[0] (local): models: "),
    "no name": ({"kind": "openai", "models": ["*"]}, "providers[0]: name: Field required"),
    "a name with spaces": ({**LOCAL, "name": "my box"}, "providers[0] (my box): name: "),
    "a URL without a scheme": ({**LOCAL, "base_url": "127.0.0.1:9000"}, "providers[0] (local): base_url: "),
    "a key in its place": ({**LOCAL, "api_key_env": "sk-123"}, "providers[0] (local): api_key_env: "),
    "another setting for the key": ({**LOCAL, "api_key_env": "DATABASE_URL"}, "(local): api_key_env: DATABASE_URL has another"),
    "a key in a header": ({**LOCAL, "headers": {"Authorization": "Bearer x"}}, "(local): headers: Authorization carries a key"),
    "a price that is not a number": (
        {**LOCAL, "prices": {"llama-*": {"input": "cheap", "output": "1"}}},
        "(local): prices: llama-*.input: must be a number",
    ),
    "a negative price": (
        {**LOCAL, "prices": {"llama-*": {"input": "-1", "output": "1"}}},
        "(local): prices: llama-*.input: must be",
    ),
    "an endless price": ({**LOCAL, "prices": {"*": {"input": "Infinity", "output": "1"}}}, "(local): prices: *.input: must be"),
    "half a price": ({**LOCAL, "prices": {"*": {"input": "1"}}}, "(local): prices: *.output: is missing"),
    "a price of an unknown kind": (
        {**LOCAL, "prices": {"*": {"input": "1", "output": "1", "tea": "1"}}},
        "(local): prices: *.tea: is not a price",
    ),
    "a price that is not text": ({**LOCAL, "prices": {"*": {"input": 0.2, "output": "1"}}}, "(local): prices: *.input: must be"),
    "a price that is true": ({**LOCAL, "prices": {"*": {"input": True, "output": "1"}}}, "(local): prices: *.input: must be"),
    "a price beyond all numbers": (
        {**LOCAL, "prices": {"*": {"input": "1e400", "output": "1"}}},
        "(local): prices: *.input: must be",
    ),
    "a price without a number": ({**LOCAL, "prices": {"*": {"input": "NaN", "output": "1"}}}, "(local): prices: *.input: must be"),
    "a price for all tokens": ({**LOCAL, "prices": {"*": "0.2"}}, "(local): prices.*: Input should be a valid dictionary"),
    "prices in a list": ({**LOCAL, "prices": ["0.2"]}, "(local): prices: Input should be a valid dictionary"),
    "prices of no model": ({**LOCAL, "prices": {"": {"input": "1", "output": "1"}}}, "(local): prices."),
    "a window that is not a number": ({**LOCAL, "windows": {"*": "big"}}, "(local): windows.*: Input should be a valid integer"),
    "a window of 0": ({**LOCAL, "windows": {"*": 0}}, "(local): windows.*: Input should be greater than or equal to 1000"),
    "a limit of 0": ({**LOCAL, "limits": {"seconds": 0}}, "(local): limits.seconds: Input should be greater than 0"),
}


@pytest.mark.parametrize(("entry", "fault"), FAULTS.values(), ids=FAULTS.keys())
def test_a_fault_is_named_by_entry_and_field(write_registry: WriteRegistry, entry: Any, fault: str) -> None:
    write_registry(entry)
    with pytest.raises(SystemExit) as stopped:
        refuse_needless("web")
    message = str(stopped.value)
    assert message.startswith("assent: ASSENT_PROVIDERS (")
    assert fault in message
    assert "\n" not in message


@pytest.mark.parametrize("text", ["", "[]", "{", '{"providers": {}}', '{"providers": []}', "[" * 100_000, '{"provider": []}'])
def test_a_malformed_file_is_refused(write_registry: WriteRegistry, text: str) -> None:
    write_registry(text=text)
    with pytest.raises(providers.ProvidersMisconfigured, match="ASSENT_PROVIDERS"):
        providers.registry()


def test_two_entries_of_one_name_are_refused(write_registry: WriteRegistry) -> None:
    write_registry(LOCAL, {**CLAUDE, "name": "local"})
    with pytest.raises(providers.ProvidersMisconfigured, match=r"providers\[1\] \(local\): name: is taken"):
        providers.registry()


def test_a_missing_file_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASSENT_PROVIDERS", "/nowhere/providers.json")
    settings.cache_clear()
    with pytest.raises(providers.ProvidersMisconfigured, match=r"/nowhere/providers\.json.*No such file"):
        providers.registry()


def test_only_turns_workers_get_the_keys_that_the_file_names(
    write_registry: WriteRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert holders("LOCAL_KEY") == ("tools",)
    write_registry(LOCAL, CLAUDE)
    assert holders("LOCAL_KEY") == ("turns",)
    variables = {"LOCAL_KEY": "hush", "OTHER_KEY": "mine"}
    assert [environment_of(process, variables) for process in ("turns", "tools", "web")] == [
        {"LOCAL_KEY": "hush"},
        {"OTHER_KEY": "mine"},
        {},
    ]
    for name in list(os.environ):
        if name.startswith(("DATABASE", "ANTHROPIC", "ASSENT_AUDIT")) or name.endswith("_PRIVATE_KEYS"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("LOCAL_KEY", "hush")
    monkeypatch.setenv("ASSENT_ENVIRONMENT", "production")
    settings.cache_clear()
    with pytest.raises(SystemExit, match=r"LOCAL_KEY: tools must not hold this: only turns may have it"):
        refuse_needless("tools")
    refuse_needless("turns")


def test_in_production_turns_start_if_one_provider_has_a_key_or_needs_none(
    write_registry: WriteRegistry, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for name in list(os.environ):
        if name.startswith(("DATABASE", "ANTHROPIC", "ASSENT_AUDIT")) or name.endswith("_PRIVATE_KEYS"):
            monkeypatch.delenv(name)
    worker = SimpleNamespace(app=SimpleNamespace(amqp=SimpleNamespace(queues=SimpleNamespace(consume_from={"turns": None}))))
    write_registry(LOCAL, CLAUDE, ASSENT_ENVIRONMENT="production", LOCAL_KEY="", ANTHROPIC_API_KEY="")
    with pytest.raises(SystemExit, match="no provider of models has a key: set LOCAL_KEY or ANTHROPIC_API_KEY"):
        check_worker(instance=worker)
    write_registry(LOCAL, CLAUDE, ASSENT_ENVIRONMENT="development")
    providers.check_keys()
    assert "no provider of models has a key" in caplog.text
    monkeypatch.setenv("ASSENT_ENVIRONMENT", "production")
    write_registry(LOCAL, CLAUDE, LOCAL_KEY="hush")
    providers.check_keys()
    write_registry({key: value for key, value in CLAUDE.items() if key != "api_key_env"}, LOCAL_KEY="")
    providers.check_keys()
