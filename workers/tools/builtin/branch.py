"""`create_branch`: a git branch in the session's files."""

import os
import time
from pathlib import Path
from typing import Any

from workers.tools import paths
from workers.tools.builtin.shell import confined, shell_ready, walls_of
from workers.tools.clean import escape_controls
from workers.tools.errors import LAPSED, ToolError
from workers.tools.kinds import Tool, ToolContext, ToolResult, text_result
from workers.tools.output import OutputSoFar
from workers.tools.sandbox import bubblewrap
from workers.tools.sandbox.leash import run_kept

_NAME_BYTES = 200
# A key that may create a branch may not thereby run commands. `workers.tools.sandbox.git` sets aside the repository's programs; a
# switch must not start others either, by way of a submodule or of a partial clone that fetches.
_QUIET = ("-c", "submodule.recurse=false", "-c", "protocol.allow=never")
_FILTERS = r"^filter\..*\.(clean|smudge|process|required)$"


class _Repository:
    """The one that a directory of the session is in. Every command of git runs behind the shell's walls."""

    def __init__(self, context: ToolContext, directory: Path) -> None:
        self._context = context
        self._directory = directory
        self._deadline = time.monotonic() + context.seconds
        self._more: list[str] = []
        inside = self.asked("rev-parse", "--absolute-git-dir", "--show-toplevel")
        if inside is None or not all(_within(context.workdir, place) for place in inside.splitlines()):
            raise ToolError("there is no git repository with a working tree here; make one with `git init`, or give directory")
        for key in (self.asked("config", "--name-only", "--get-regexp", _FILTERS) or "").splitlines():
            if "=" in key:  # git would take the first one for the end of the key
                raise ToolError(
                    f"the repository's configuration has the key {escape_controls(key[:200])}, which cannot be set aside"
                )
            self._more += ["-c", f"{key}={'false' if key.endswith('.required') else ''}"]

    def git(self, *words: str) -> tuple[int, str, str]:
        """Exit code, output and errors of a git command. Errors: ToolError if it is cancelled or takes too long."""
        output = OutputSoFar()
        git = bubblewrap.program("git")
        if git is None:
            raise ToolError("git is not installed where this runs")
        walls, full = walls_of(self._context.workdir)
        if full:
            raise ToolError("the working directory is full; remove some files first")
        command = confined(self._context, [git, *_QUIET, *self._more, *words], self._directory, walls, {})
        ended = run_kept(command, max(self._deadline - time.monotonic(), 0), self._context.cancelled, output)
        if ended.how != "exited":
            why = {
                "timeout": f"timed out after {self._context.seconds:g} s",
                "cancelled": "cancelled",
                "lapsed": f"was ended, as {LAPSED}",
            }
            raise ToolError(f"{why.get(ended.how, ended.why)}; see `git status` for what was done")
        texts = output.texts()
        return ended.code, texts.get("stdout", ""), texts.get("stderr", "")

    def asked(self, *words: str) -> str | None:
        """What git answers; None if it answers that there is nothing."""
        code, said, _ = self.git(*words)
        return said.strip("\n") if code == 0 else None

    def commit(self, revision: str) -> str | None:
        """The full name of the commit that a revision means."""
        return self.asked("rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")


def _create_branch(context: ToolContext, fields: dict[str, Any]) -> ToolResult:
    if problem := shell_ready():
        raise ToolError(problem)
    name, start = fields["name"], fields.get("from") or None
    for field, value in (("name", name), ("from", start or "x")):
        if not value or len(value.encode(errors="replace")) > _NAME_BYTES or escape_controls(value) != value:
            raise ToolError(f"{field}: must be 1 to {_NAME_BYTES} visible characters")
    repository = _Repository(context, _directory(context, fields.get("directory") or "."))
    if name.startswith("-") or repository.asked("check-ref-format", "--branch", name) != name:
        raise ToolError(f"name: git allows no branch of the name {name!r}")
    current = repository.asked("symbolic-ref", "--quiet", "--short", "HEAD")
    wanted = repository.commit(start or "HEAD")
    if start and wanted is None:
        raise ToolError(f"from: {start!r} is no commit, branch or tag of this repository")
    there = repository.commit(f"refs/heads/{name}")
    if there is None:
        return _new(repository, name, start, current, wanted)
    if there != wanted:
        at = f"{wanted[:12]}, where it should begin" if wanted else "where this should begin"
        raise ToolError(f"the branch {name} exists already, at {there[:12]}, not at {at}; nothing was changed")
    if current != name:
        _switched(repository, "switch", "--quiet", "--no-guess", name)
    return text_result(f"the branch {name} is there already, at {there[:12]}; switched to it")


def _new(repository: _Repository, name: str, start: str | None, current: str | None, wanted: str | None) -> ToolResult:
    if wanted is None and current == name:
        return text_result(f"on the branch {name} already, which has no commit yet")
    # The commit, not the name: a branch of another repository would be followed from now on.
    _switched(repository, "switch", "--quiet", "--no-track", "--create", name, *([wanted] if start and wanted else []))
    return text_result(f"created the branch {name}{f' at {wanted[:12]}' if wanted else ''} and switched to it")


def _switched(repository: _Repository, *words: str) -> None:
    code, _, errors = repository.git(*words)
    if code == 0:
        return
    if "would be overwritten" in errors:
        files = ", ".join(line.strip() for line in errors.splitlines() if line.startswith("\t"))
        raise ToolError(f"this would overwrite changes that are not committed: {files}; commit them first. Nothing was changed")
    raise ToolError(f"git says: {errors.strip()[:2000] or f'exit code {code}'}")


def _directory(context: ToolContext, path: str) -> Path:
    """Where a path leads, with no link in it."""
    with paths.located(context.workdir, path, context.judged) as place:
        folder = paths.open_folder(place)
        try:
            real = (context.workdir / path).resolve()
        finally:
            os.close(folder)
    if not _within(context.workdir, str(real)):
        raise ToolError(f"{place.shown}: is outside the working directory")
    return real


def _within(workdir: Path, place: str) -> bool:
    return Path(place).is_relative_to(workdir.resolve())


CREATE_BRANCH = Tool(
    name="create_branch",
    description=(
        "Create a git branch in the working directory and switch to it. If it is there already at the same commit, switch to it."
    ),
    input_schema={
        "type": "object",
        "properties": {
            "name": {"type": "string", "description": "The name of the new branch."},
            "from": {
                "type": ["string", "null"],
                "description": "The commit, branch or tag at which it begins. Without it, where the working tree is.",
            },
            "directory": {
                "type": ["string", "null"],
                "description": "The repository, relative to the working directory. Without it the working directory itself.",
            },
        },
        "required": ["name"],
        "additionalProperties": False,
    },
    effect="write",
    idempotent=True,
    seconds=None,
    prompt="Create git branch: {name}",
    run=_create_branch,
)
GIT_TOOLS = (CREATE_BRANCH,)
"""The toolset `assent:git`."""
