"""`create_branch`: a git branch in the session's files."""

import os
import time
from pathlib import Path
from typing import Any

from assent import ToolError
from workers.tools.builtin import paths
from workers.tools.builtin.shell import confined, run, walls_of
from workers.tools.clean import escape_controls
from workers.tools.kinds import Tool, ToolContext, ToolResult, text_result
from workers.tools.output import OutputSoFar
from workers.tools.sandbox import bubblewrap

_NAME_BYTES = 200
# A key that may create a branch may not run commands with it. `workers.tools.sandbox.git` overrides the repository's programs. A
# switch must not start other programs either, through a submodule or through a partial clone that fetches.
_QUIET = ("-c", "submodule.recurse=false", "-c", "protocol.allow=never")
_FILTERS = r"^filter\..*\.(clean|smudge|process|required)$"


class _Repository:
    """The repository around a directory of the session. Every command of git runs in the shell's sandbox."""

    def __init__(self, context: ToolContext, directory: Path) -> None:
        self._context = context
        self._directory = directory
        self._deadline = time.monotonic() + context.seconds
        self._more: list[str] = []
        inside = self.output("rev-parse", "--absolute-git-dir", "--show-toplevel")
        if inside is None or not all(_within(context.workdir, place) for place in inside.splitlines()):
            raise ToolError("there is no git repository with a working tree here; make one with `git init`, or give directory")
        for key in (self.output("config", "--name-only", "--get-regexp", _FILTERS) or "").splitlines():
            if "=" in key:  # git would read the first `=` as the end of the key
                raise ToolError(
                    f"the repository's configuration has the key {escape_controls(key[:200])}, which cannot be overridden"
                )
            self._more += ["-c", f"{key}={'false' if key.endswith('.required') else ''}"]

    def git(self, *words: str) -> tuple[int, str, str]:
        """Exit code, output and errors of a git command. Raises ToolError after a cancel or the time limit."""
        output = OutputSoFar()
        git = bubblewrap.program("git")
        if git is None:
            raise ToolError("git is not installed where this runs")
        walls, full = walls_of(self._context.workdir)
        if full:
            raise ToolError("the working directory is full; remove some files first")
        command = confined(self._context, [git, *_QUIET, *self._more, *words], self._directory, walls, {})
        end = run(command, max(self._deadline - time.monotonic(), 0), self._context.cancelled, output)
        if reason := end.reason(self._context.seconds):
            raise ToolError(f"{reason}; see `git status` for what was done")
        texts = output.texts()
        return end.code, texts.get("stdout", ""), texts.get("stderr", "")

    def output(self, *words: str) -> str | None:
        """Return the output of a git command; None if the command fails."""
        code, output, _ = self.git(*words)
        return output.strip("\n") if code == 0 else None

    def commit(self, revision: str) -> str | None:
        """Return the full name of a revision's commit; None if there is none."""
        return self.output("rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")


def _create_branch(context: ToolContext, fields: dict[str, Any]) -> ToolResult:
    if problem := bubblewrap.shell_problem():
        raise ToolError(problem)
    name, start = fields["name"], fields.get("from") or None
    for field, value in (("name", name), ("from", start or "x")):
        if not value or len(value.encode(errors="replace")) > _NAME_BYTES or escape_controls(value) != value:
            raise ToolError(f"{field}: must be 1 to {_NAME_BYTES} visible characters")
    repository = _Repository(context, _directory(context, fields.get("directory") or "."))
    if name.startswith("-") or repository.output("check-ref-format", "--branch", name) != name:
        raise ToolError(f"name: git does not allow a branch named {name!r}")
    current = repository.output("symbolic-ref", "--quiet", "--short", "HEAD")
    target = repository.commit(start or "HEAD")
    if start and target is None:
        raise ToolError(f"from: {start!r} is not a commit, branch or tag of this repository")
    existing = repository.commit(f"refs/heads/{name}")
    if existing is None:
        return _new_branch(repository, name, start, current, target)
    if existing != target:
        place = f"at {target[:12]}, where it should begin" if target else "where it should begin"
        raise ToolError(f"the branch {name} exists already, at {existing[:12]}, not {place}; nothing was changed")
    if current != name:
        _switch(repository, "switch", "--quiet", "--no-guess", name)
    return text_result(f"the branch {name} is there already, at {existing[:12]}; switched to it")


def _new_branch(repository: _Repository, name: str, start: str | None, current: str | None, target: str | None) -> ToolResult:
    if target is None and current == name:
        return text_result(f"on the branch {name} already, which has no commit yet")
    # The commit, not the name: git would make the new branch follow a remote branch.
    _switch(repository, "switch", "--quiet", "--no-track", "--create", name, *([target] if start and target else []))
    return text_result(f"created the branch {name}{f' at {target[:12]}' if target else ''} and switched to it")


def _switch(repository: _Repository, *words: str) -> None:
    code, _, errors = repository.git(*words)
    if code == 0:
        return
    if "would be overwritten" in errors:
        files = ", ".join(line.strip() for line in errors.splitlines() if line.startswith("\t"))
        raise ToolError(
            f"the switch would overwrite changes that are not committed: {files}; commit them first. Nothing was changed"
        )
    raise ToolError(f"git says: {errors.strip()[:2000] or f'exit code {code}'}")


def _directory(context: ToolContext, path: str) -> Path:
    """Return the folder at a path, with all links resolved."""
    with paths.located(context.workdir, path, context.path_targets) as place:
        folder = paths.open_folder(place)
        try:
            real = (context.workdir / path).resolve()
        finally:
            os.close(folder)
    if not _within(context.workdir, str(real)):
        raise ToolError(f"{place.label}: is outside the working directory")
    return real


def _within(workdir: Path, place: str) -> bool:
    return Path(place).is_relative_to(workdir.resolve())


CREATE_BRANCH = Tool(
    name="create_branch",
    description=(
        "Create a git branch in the working directory and switch to it. If the branch exists at the same commit, switch to it."
    ),
    input_schema={
        "type": "object",
        "properties": {
            "name": {"type": "string", "description": "The name of the new branch."},
            "from": {
                "type": ["string", "null"],
                "description": "The commit, branch or tag at which the branch begins. Default: HEAD.",
            },
            "directory": {
                "type": ["string", "null"],
                "description": "The repository, relative to the working directory. Default: the working directory.",
            },
        },
        "required": ["name"],
        "additionalProperties": False,
    },
    effect="write",
    idempotent=True,
    prompt="Create git branch: {name}",
    run=_create_branch,
)
GIT_TOOLS = (CREATE_BRANCH,)
"""The toolset `assent:git`."""
