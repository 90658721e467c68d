"""Toolsets that a test writes as somebody's own code, outside of Assent, and calls as a worker does."""

import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from models.settings import settings
from workers.tools.kinds import ToolContext, ToolResult
from workers.tools.python import running

HEAD = "from assent import Cache, Context, Document, Image, ToolError, Toolset\n"


@dataclass
class House:
    """A folder on the path with somebody's modules."""

    folder: Path
    patch: pytest.MonkeyPatch

    def write(self, module: str, body: str) -> Path:
        """Write a module that begins with the imports of `HEAD`, and return its path."""
        file = self.folder / f"{module.replace('.', '/')}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(HEAD + textwrap.dedent(body))
        return file

    def name(self, *specs: str) -> None:
        """Name toolsets in the setting."""
        self.patch.setenv("ASSENT_TOOLSETS", " ".join(specs))
        settings.cache_clear()

    def install(self, name: str, point: str, top: str = "") -> Path:
        """Write the metadata of a distribution with an entry point, as pip does, and return their folder."""
        info = self.folder / f"{name.replace('-', '_')}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(f"[assent.toolsets]\nit = {point}\n")
        files = [str(file.relative_to(self.folder)) for file in self.folder.rglob("*") if file.suffix in {".py", ".pth"}]
        (info / "RECORD").write_text("".join(f"{file},,\n" for file in files if file.startswith(top) or file.endswith(".pth")))
        return info


@dataclass
class Caller:
    """Calls the tools of one toolset as a worker does."""

    entries: dict[str, dict[str, Any]]
    toolset: str
    context: Callable[..., ToolContext]

    def __call__(self, tool: str, context: ToolContext | None = None, **fields: Any) -> ToolResult:
        return running.toolset_tool(self.toolset, self.entries[tool]).run(context or self.context(), fields)
