"""Every page has one title, the way up from it, and help one click away, and names what it shows: no id is on any page."""

import html
import re

import people
from inbox.waiting import asked, asks_back, unknown_outcome
from rows.crew import Crew, send
from rows.spending import QUOTE, spent
from rows.stage import Stage, call, entry, say

from models.pure.state_words import APPROVAL, DELIVERY, EFFECT, SERVICE, SESSION, SYSTEM, TOOL_CALL
from models.session.approval.row import Approval
from models.workspace import toolset

FORM = {"type": "object", "properties": {"name": {"type": "string"}}}
_ID = re.compile(r"\b[a-z]{3,8}_01[0-9A-Z]{24}\b")
LISTS = [
    "",
    "?show=all",
    "?show=decided",
    "?show=unknown",
    "/sessions",
    "/agents",
    "/policies",
    "/grants",
    "/insights",
    "/audit",
    "/system",
]
OTHERS = ["/search?q=git", "/words", "/halt", "/settings", "/account", "/channels", "/views", "/keyboard", "/people", "/groups"]
OF_ADMINS = ["/approvers", "/workspace/channels", "/denial-reasons", "/servers", "/keys", "/provider-keys", "/usage", "/webhooks"]
BELOW = ["/sessions/new", "/agents/new", "/channels/new", "/people/new", "/groups/new", "/keys/new", "/usage/new", "/webhooks/new"]


def waiting_of_each_kind(stage: Stage) -> list[Approval]:
    """A command, a call of a toolset, a question, an unknown outcome and a budget; the command's session has no title."""
    toolset.announce({"orders": [entry("refund", input_schema={"type": "object"})]})
    rows = asked(stage, say("I push."), call(command="git push"))
    rows += asked(stage, *(call("mcp__shop__refund", order=n) for n in range(5)), servers={"shop": "assent:orders"}, max_turns=9)[
        :1
    ]
    rows += [asks_back(stage, {"who": {"message": "For whom?", "schema": FORM}}), unknown_outcome(stage)]
    stage.quote = QUOTE
    return rows + [row for row in stage.approvals(spent(stage)) if row.status == "pending"]


def crew_of(stage: Stage) -> list[str]:
    """The pages of a session with a sub-agent, and of that agent."""
    crew = Crew.begin(stage)
    crew.lead_replies(send("Reader", "Find the price."))
    crew.replies(call(command="grep pump"), number=0)
    return [f"/sessions/{crew.session_id}", f"/sessions/{crew.session_id}/threads/{crew.thread(0).id}"]


def test_every_page_has_one_head_and_no_id(api: str, stage: Stage) -> None:
    rows = waiting_of_each_kind(stage)
    stage.decide(asked(stage)[0], result="deny")
    agent = f"/agents/{rows[0].agent_id}"
    below = (
        BELOW
        + crew_of(stage)
        + [f"/approvals/{row.id}" for row in rows]
        + [f"/approvals/{rows[0].id}/{part}" for part in ("edit", "always")]
    )
    below += [agent, f"{agent}?show=tools", f"{agent}?show=versions", f"{agent}/edit", "/together?tool=mcp__shop__refund"]
    with people.member(stage, "admin").client(api) as client:
        for path in LISTS + OTHERS + OF_ADMINS + below:
            response = client.get(f"/inbox{path}")
            assert response.status_code == 200, path
            page = response.text
            main = page[page.index("<main") : page.index("</main>")]
            assert main.count("<h1") == 1, path
            assert ('class="page-head"' in main) != ('class="card"' in main), path
            assert ('class="up"' in main) == (path in below), path
            assert 'href="/inbox/words" title="Help' in page, path
            assert 'href="/docs" title="API reference"' in page, path
            words = html.unescape(re.sub(r"<[^>]*>", " ", re.sub(r"<(pre|code)\b.*?</\1>", "", main, flags=re.DOTALL)))
            assert not _ID.search(words), (path, _ID.findall(words))


def test_the_page_of_words_has_every_state(api: str, stage: Stage) -> None:
    with people.member(stage, "viewer").client(api) as client:
        page = client.get("/inbox/words").text
    shown = set(re.findall(r"</svg>([^<]+)</span>", page))
    states = (APPROVAL, TOOL_CALL, SESSION, EFFECT, DELIVERY, SERVICE, SYSTEM)
    assert {state.word for each in states for state in each.values()} - shown == set()
