"""Each command of `assent` that shows or makes something has `--json`, but for those that print one value or JSON, or talk."""

from collections.abc import Iterator

import click

from api.cli.main import main

TALKS = {"chat", "approvals watch", "open", "up", "run"}
PRINTS_ONE_TEXT = {
    "completion",
    "environment new",
    "environment of",
    "audit export",
    "audit key",
    "backup key",
    "secrets keys",
    "secrets push",
}
PRINTS_JSON = {"policy judge", "people export", "tools show"}
OPENS_THE_DATABASE = {
    "database",
    "workspaces create",
    "migrate",
    "roles",
    "secrets rotate",
    "audit adopt",
    "audit cut",
    "audit erase",
}
"""The operator's commands of a first installation and of the seals. Those that make something print its id, link or secret."""
ENDS_SOMETHING = {"remove", "erase", "revoke", "delete", "end", "deactivate", "add", "set", "test"}
"""The last word of commands that say in a line that they did what they are told, and print an id at most."""


def commands(command: click.Command, words: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Yield each command that is no group of others, with its words."""
    if not isinstance(command, click.Group):
        yield words, command
        return
    context = click.Context(command)
    for name in command.list_commands(context):
        child = command.get_command(context, name)
        assert child, name
        yield from commands(child, (*words, name))


def test_every_other_command_has_the_option() -> None:
    silent = {
        words for words, command in commands(main) if "--json" not in {option for one in command.params for option in one.opts}
    }
    known = TALKS | PRINTS_ONE_TEXT | PRINTS_JSON | OPENS_THE_DATABASE
    assert {words for words in silent if not {" ".join(words), words[0]} & known and words[-1] not in ENDS_SOMETHING} == set()
