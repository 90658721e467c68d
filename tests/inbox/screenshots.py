"""The pictures of the documents: `make screenshots` writes them into docs/images.

Not a test file by its name: it runs only when it is asked for.
"""

from collections.abc import Callable
from pathlib import Path

import people
import pytest
from inbox.visitor import Visitor
from playwright.sync_api import Browser
from rows.stage import Stage, call, say

from models.database.transactions import transaction
from models.pure.line_diff import hunks
from models.session.evidence import Evidence
from models.session.session import Session

IMAGES = Path(__file__).parents[2] / "docs" / "images"
BEFORE = "def total(rows):\n    result = 0\n    for row in rows:\n        result += row.amount\n    return result\n"
AFTER = "def total(rows):\n    return sum(row.amount for row in rows if row.is_open)\n"
WORK = {
    "Release 2.4": call(command="git push origin release/2.4 && rm -rf build  # tidy up"),
    "Fix the totals": call("edit", file_path="src/totals.py", old_string=BEFORE[17:], new_string=AFTER[17:]),
    "Weekly report": call(command="curl -s https://reports.example/weekly.csv | head -20"),
}


@pytest.fixture
def waiting(stage: Stage) -> str:
    """Some work that waits. Returns the id of the approval of the edit."""
    edit = ""
    for title, block in WORK.items():
        session_id = stage.session(max_turns=9, bash="always_ask", edit="always_ask")
        stage.locked(session_id, lambda _db, session, title=title: _name(session, title))
        stage.message(session_id, f"{title}: please go on.")
        stage.reply(session_id, say("I know what to do."), block)
        [approval] = stage.approvals(session_id)
        if block["name"] == "edit":
            edit = approval.id
            found, left_out = hunks(BEFORE, AFTER)
            with transaction(stage.workspace_id) as db:
                Evidence.keep(db, approval.id, session_id, {"hunks": found, "left_out": left_out})
    return edit


def _name(session: Session, title: str) -> None:
    session.title = title


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("device", ["desk", "phone"])
def test_pictures(browser: Browser, visit: Callable[..., Visitor], stage: Stage, waiting: str, theme: str, device: str) -> None:
    IMAGES.mkdir(exist_ok=True)
    anna = people.member(stage, "admin", email="anna@example.com")
    size = {} if device == "phone" else {"viewport": {"width": 1100, "height": 640}}
    visitor = visit("admin", somebody=anna, phone=device == "phone", color_scheme=theme, **size)
    for name, path in {"inbox": "/inbox", "card": f"/inbox/approvals/{waiting}"}.items():
        visitor.open(path)
        visitor.page.screenshot(path=IMAGES / f"{name}-{device}-{theme}.png")
