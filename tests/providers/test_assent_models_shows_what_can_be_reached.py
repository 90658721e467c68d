"""`assent models` lists and tests the models of the configured providers, with the keys of its environment."""

import json
from collections.abc import Callable

import pytest
from click.testing import CliRunner, Result

from api.cli.main import main


@pytest.fixture
def assent(standin: str, write_registry: Callable[..., None]) -> Callable[..., Result]:
    """A function that runs `assent models ...` with a provider that answers, `here`, and one that does not, `away`."""
    here = {"name": "here", "kind": "openai", "base_url": f"{standin}/v1", "models": ["stand-*"], "api_key_env": "HERE_KEY"}
    nowhere = "http://127.0.0.1:9"
    away = {"name": "away", "kind": "anthropic", "base_url": nowhere, "models": ["claude-*"], "api_key_env": "AWAY_KEY"}
    write_registry(here, away, HERE_KEY="sk-here")
    return lambda *arguments: CliRunner().invoke(main, ["models", *arguments])


def test_it_lists_what_each_provider_has_or_why_it_does_not_answer(assent: Callable[..., Result]) -> None:
    shown = assent()
    assert shown.exit_code == 1
    assert shown.output.splitlines()[2:] == [
        "  lists stand-in",
        "away  (anthropic, http://127.0.0.1:9, key: AWAY_KEY is not set)",
        "  serves claude-*",
        "  AWAY_KEY is not set: provider away needs a key",
    ]
    rows = json.loads(assent("list", "--json").stdout)
    assert [(row["provider"], row["listed"], bool(row["error"])) for row in rows] == [
        ("here", ["stand-in"], False),
        ("away", [], True),
    ]
    assert "sk-here" not in shown.output


def test_it_sends_a_short_request_to_a_model(assent: Callable[..., Result]) -> None:
    shown = assent("test", "stand-in")
    assert (shown.exit_code, "stand-in at here answered in" in shown.output) == (0, True)
    row = json.loads(assent("test", "stand-in", "--json").stdout)
    assert (row["provider"], row["stop_reason"]) == ("here", "end_turn")
    assert row["usage"]["output_tokens"] > 0


@pytest.mark.parametrize(
    ("arguments", "fault"),
    [
        (["test", "gpt-5.5"], "no provider serves 'gpt-5.5': see ASSENT_PROVIDERS"),
        (["test", "claude-1"], "away: AWAY_KEY is not set: provider away needs a key"),
        (["test", "claude-1", "--provider", "nobody"], "no provider 'nobody'"),
    ],
)
def test_it_says_why_a_model_cannot_be_tested(assent: Callable[..., Result], arguments: list[str], fault: str) -> None:
    shown = assent(*arguments)
    assert (shown.exit_code, fault in shown.output) == (1, True)
