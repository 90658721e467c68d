"""The pictures of the documents: `make screenshots` writes them into docs/images.

The name is not that of a test file, so the tests run only on demand.
"""

from collections.abc import Callable
from pathlib import Path

import people
import pytest
from inbox.visitor import Visitor
from inbox.waiting import endpoint_with_deliveries
from outbox.notified import channel, mail_channel
from playwright.sync_api import Browser
from rows.spending import COSTS_10, MODEL, QUOTE, limit
from rows.stage import Stage, call, say

from models.database import clock
from models.database.transactions import transaction
from models.notices.channel import Channel
from models.notices.notification import Notification
from models.pure.text.line_diff import hunks
from models.session.approval.evidence import Evidence
from models.session.row import Session

IMAGES = Path(__file__).parents[2] / "docs" / "images"
BEFORE = "def total(rows):\n    result = 0\n    for row in rows:\n        result += row.amount\n    return result\n"
AFTER = "def total(rows):\n    return sum(row.amount for row in rows if row.is_open)\n"
WORK = {
    "Release 2.4": call(command="git push origin release/2.4 && rm -rf build  # tidy up"),
    "Fix the totals": call("edit", file_path="src/totals.py", old_string=BEFORE[17:], new_string=AFTER[17:]),
    "Weekly report": call(command="curl -s https://reports.example/weekly.csv | head -20"),
}
AGENTS = {"Release 2.4": "Release captain", "Fix the totals": "Developer", "Weekly report": "Reporter"}
SAID = {
    "Release 2.4": ("Please publish release 2.4.", "The tests pass. I push the branch and remove the build."),
    "Fix the totals": (
        "The totals count closed rows too. Please fix that.",
        "Closed rows must not count, so I add up the open ones.",
    ),
    "Weekly report": ("Please sum up last week's numbers.", "I look at the first rows before I sum them up."),
}
"""The person's request and the agent's words, by title."""


@pytest.fixture
def waiting(stage: Stage) -> str:
    """Some work that waits. Returns the id of the approval of the edit."""
    edit = ""
    for title, block in WORK.items():
        session_id = stage.session(max_turns=9, agent_name=AGENTS[title], bash="always_ask", edit="always_ask")
        stage.locked(session_id, lambda locked, title=title: _name(locked.session, title))
        request, words = SAID[title]
        stage.message(session_id, request)
        stage.reply(session_id, say(words), block)
        [approval] = stage.approvals(session_id)
        if block["name"] == "edit":
            edit = approval.id
            lines, left_out = hunks(BEFORE, AFTER)
            with transaction(stage.workspace_id) as db:
                Evidence.keep(db, approval.id, session_id, {"hunks": lines, "left_out": left_out})
    return edit


def _name(session: Session, title: str) -> None:
    session.title = title


@pytest.fixture
def anna(stage: Stage) -> people.Somebody:
    """An admin, who signed in by a passkey."""
    anna = people.member(stage, "admin", email="anna@example.com")
    with transaction(stage.workspace_id) as db:
        db.write("UPDATE sign_in SET method = 'passkey' WHERE person_id = %(id)s", id=anna.person_id)
    return anna


@pytest.fixture
def pages(stage: Stage, anna: people.Somebody) -> dict[str, str]:
    """Pages of endpoints, channels and costs, with something on each."""
    quiet = {"quiet_from": "22:00", "quiet_until": "07:00", "time_zone": "Europe/Berlin"}
    mail_channel(stage, anna, name="Work", timing="reminders", **quiet)
    telegram = channel(stage, anna, kind="apprise", address="Telegram", name="My phone")
    room = channel(stage, kind="slack", address="C012AB3CD", name="#approvals")
    archived = channel(stage, kind="slack", address="C045EF6GH", name="#releases")
    with transaction(stage.workspace_id) as db:
        for row in (telegram, room):
            test = Notification.test(db, Channel.find(db, row.id))
            test.claim(db, clock.now(db))
            test.succeed(db, "test", 0, {})
        Channel.find(db, archived.id).disable(db, stage.principal, "The Slack conversation is archived.")
    stage.quote = QUOTE
    for name in ("Support", "Release manager"):
        session_id = stage.session(agent_name=name, model=MODEL)
        stage.message(session_id)
        stage.reply(session_id, say("Done."), charge=COSTS_10)
        limit(stage, "25", ("agent", stage.read(session_id).agent_id), "weekly")
    limit(stage, "500")
    endpoint_id = endpoint_with_deliveries(stage, name="Deployments", description="Tells the deployment board what waits.")
    return {
        "webhooks": "/inbox/webhooks",
        "webhook": f"/inbox/webhooks/{endpoint_id}",
        "channels": "/inbox/channels",
        "workspace-channels": "/inbox/workspace/channels",
        "usage": "/inbox/usage",
    }


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("device", ["desk", "phone"])
def test_pictures_of_decisions(
    browser: Browser, visit: Callable[..., Visitor], anna: people.Somebody, waiting: str, theme: str, device: str
) -> None:
    _picture(visit, anna, {"inbox": "/inbox", "card": f"/inbox/approvals/{waiting}"}, theme, device)


@pytest.mark.parametrize(("name", "theme", "device"), [("webhook", "light", "desk"), ("channels", "dark", "phone")])
def test_pictures_of_settings(
    browser: Browser,
    visit: Callable[..., Visitor],
    anna: people.Somebody,
    pages: dict[str, str],
    name: str,
    theme: str,
    device: str,
) -> None:
    _picture(visit, anna, {name: pages[name]}, theme, device, height=920)


def _picture(
    visit: Callable[..., Visitor], anna: people.Somebody, paths: dict[str, str], theme: str, device: str, height: int = 640
) -> None:
    IMAGES.mkdir(exist_ok=True)
    size = {} if device == "phone" else {"viewport": {"width": 1280, "height": height}}
    visitor = visit("admin", somebody=anna, phone=device == "phone", color_scheme=theme, **size)
    for name, path in paths.items():
        visitor.open(path)
        if device == "desk" and name == "inbox":
            visitor.page.locator("#pane").get_by_role("button", name="Allow once").wait_for()
        visitor.page.screenshot(path=IMAGES / f"{name}-{device}-{theme}.png", animations="disabled")  # buttons are full
