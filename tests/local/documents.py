"""The documents of the project as tests read them: pages, fenced snippets, code in backticks."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
_FILES = [*sorted(ROOT.glob("*.md")), *sorted(ROOT.glob("docs/*.md"))]
PAGES = {path.relative_to(ROOT).as_posix(): path.read_text() for path in _FILES}
"""The text of each page by its path."""
_FENCE = re.compile(r"^```(\w*)(?: ([^\n]+))?\n(.*?)\n```$", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"`([^`\n]+)`")


@dataclass(frozen=True)
class Snippet:
    """A fenced block."""

    page: str
    line: int
    language: str
    about: str
    """The rest of the line that opens the fence: for JSON, the request whose body the snippet is, or the name of another reader."""
    text: str

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


def snippets(*languages: str, page: str | None = None) -> list[Snippet]:
    """The snippets in these languages (all by default), of one page or of all."""
    return [each for each in _snippets() if (not languages or each.language in languages) and page in (None, each.page)]


def _snippets() -> Iterator[Snippet]:
    for page, text in PAGES.items():
        for match in _FENCE.finditer(text):
            language, about, body = match.groups(default="")
            yield Snippet(page, text.count("\n", 0, match.start()) + 1, language, about, body)


def inline(pattern: str) -> list[tuple[str, re.Match[str]]]:
    """Code in backticks outside of fences that fits the whole pattern, each once per page."""
    matches: dict[tuple[str, str], tuple[str, re.Match[str]]] = {}
    for page, text in PAGES.items():
        for code in _CODE.findall(_FENCE.sub("", text)):
            if match := re.fullmatch(pattern, code):
                matches.setdefault((page, code), (page, match))
    return list(matches.values())


def lines_of_shell(snippet: Snippet) -> list[str]:
    """The snippet's commands. A backslash at a line's end continues the line."""
    return [line for line in snippet.text.replace("\\\n", " ").splitlines() if line.strip() and not line.startswith("#")]


RUN, APPROVALS = (snippet.text for snippet in snippets("sh", page="README.md"))
"""The README's commands: the one that starts everything, and the one that decides approvals."""
[OPENAI] = [snippet for snippet in snippets("python") if "OpenAI(" in snippet.text]
[BUDGET] = [snippet for snippet in snippets("python") if "budget=" in snippet.text]
[CREW] = [snippet for snippet in snippets("python") if "multiagent=" in snippet.text]
"""The snippet in which sub-agents work."""
SDK = [snippet for snippet in snippets("python") if "ASSENT_URL" in snippet.text and snippet not in (OPENAI, BUDGET, CREW)]
"""The Python snippets that decide approvals."""
CONFTEST, TESTS = (snippet for snippet in snippets("python") if "assent.testing" in snippet.text)
"""What a team writes to test the toolset of its page."""
TOOLSETS = [snippet for snippet in snippets("python") if "Toolset(" in snippet.text]
