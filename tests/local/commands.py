"""Validates command lines of the documents without running them: the program, its subcommands and its options exist."""

import json
import re
import shlex
from itertools import pairwise

import click
from documents import ROOT
from request_bodies import check_body

from api.cli.main import main

_ASSIGNMENT = re.compile(r"[A-Z_]+=.*")


def check_command(line: str) -> None:
    """Fails on an unknown program, subcommand, option, make target or route, and on a body that the route refuses."""
    words = shlex.split(re.sub(r" > \S+$", "", line).replace("...", "x"), comments=True)
    while words and (words[0] == "export" or _ASSIGNMENT.fullmatch(words[0])):
        words.pop(0)
    if not words:
        return
    program, *arguments = words
    if program.rpartition("/")[2] == "assent":
        check_assent(arguments)
    elif program == "make":
        targets = re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
        assert [word for word in arguments if "=" not in word and word not in targets] == []
    elif program == "curl":
        _check_curl(arguments)
    elif program.rpartition("/")[2] == "python":
        _check_python(arguments)
    else:
        raise AssertionError(f"no check for the program {program!r}: add one")


def check_assent(words: list[str]) -> None:
    """Fails if the subcommand does not exist or does not take the options."""
    command: click.Command = main
    context = click.Context(command, info_name="assent")
    words = list(words)
    while isinstance(command, click.Group) and words and not words[0].startswith("-"):
        name = words.pop(0)
        subcommand = command.get_command(context, name)
        assert subcommand is not None, f"{command.name} has no command {name!r}"
        command, context = subcommand, click.Context(subcommand, info_name=name, parent=context)
    _, unread, _ = command.make_parser(context).parse_args(words)
    assert unread == [], f"{command.name} takes no {unread}"


def _check_curl(arguments: list[str]) -> None:
    options = dict(pairwise(arguments))
    (url,) = [word for word in arguments if word.startswith("$ASSENT_URL")]
    body = options.get("-d")
    method = options.get("-X", "GET" if body is None else "POST")
    check_body(method, url.removeprefix("$ASSENT_URL"), None if body is None else json.loads(body))


def _check_python(arguments: list[str]) -> None:
    dash, module, *rest = arguments
    assert dash == "-m"
    assert [word for word in rest if word.endswith(".py") and not (ROOT / word).exists()] == []
    if module != "pytest":
        source = (ROOT / module.replace(".", "/") / "__main__.py").read_text()
        assert [word for word in rest if word.startswith("-") and f'"{word}"' not in source] == []
