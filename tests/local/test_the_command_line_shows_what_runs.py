"""`assent approvals` shows exactly what would run, decides that input and no other, and names an obstacle in one line."""

import hashlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
import httpx2
import pytest
from click.testing import CliRunner

from api.cli.approvals import run
from api.cli.briefing import briefing_lines, decision_line
from api.cli.client import Inbox
from api.cli.main import assent_command, main
from api.cli.showing import describe
from models.pure.state_words import GIVEN_UP
from models.pure.text.visible import visible

EVENTS = [
    {"type": "user.tool_confirmation"},
    {"type": "agent.tool_result", "content": [{"type": "text", "text": "two\nlines\x1b[2J"}]},
    {"type": "agent.message", "content": [{"type": "text", "text": "Done."}]},
    {"type": "session.status_idle", "stop_reason": {"type": "end_turn"}},
    {"type": "agent.message", "content": [{"type": "text", "text": "never shown: after idle"}]},
]


def approval(canonical: str = '{"command":"ls"}', **more: Any) -> dict[str, Any]:
    return {
        "id": "appr_1",
        "kind": "tool_call",
        "tool": "bash",
        "prompt": "Run shell command: ls",
        "session_id": "sesn_1",
        "path": [{"session_thread_id": "sthr_1", "agent_name": "Agent"}],
        "input_canonical": canonical,
        "masked": [],
        "input_sha256": hashlib.sha256(canonical.encode()).hexdigest(),
        "rule": "default: ask",
        "created_at": "2026-01-01T00:00:00Z",
        "expires_at": "2026-01-02T00:00:00Z",
        "on_timeout": "deny",
        "required_approvals": 1,
        "approvers": [],
        "four_eyes": False,
        "people_only": False,
        "started_by": [],
        "shortage": None,
        "options": None,
        "not_offered": {},
        "widest_match": None,
        "votes": [],
        "status": "pending",
        "decided_input": None,
        "grant": None,
        "grants": [],
        **more,
    }


class Api:
    """An API with some approvals. Keeps the decisions that it was sent."""

    def __init__(self, *waiting: dict[str, Any]) -> None:
        self.waiting = list(waiting)
        self.decided: list[dict[str, Any]] = []
        self.refusal: httpx2.Response | None = None
        self.pages = 0
        """The pages of approvals that were read."""

    def __call__(self, request: httpx2.Request) -> httpx2.Response:
        if request.url.path.endswith("/stream"):
            return httpx2.Response(200, text="".join(f"event: {e['type']}\ndata: {json.dumps(e)}\n\n" for e in EVENTS))
        if request.url.path.endswith("/decision"):
            if self.refusal:
                return self.refusal
            self.decided.append(json.loads(request.content))
            return httpx2.Response(200, json=self.waiting.pop(0))
        first, limit = int(request.url.params.get("page", 0)), int(request.url.params.get("limit", 20))
        self.pages += request.url.path == "/v1/approvals"
        end = first + limit
        return httpx2.Response(
            200, json={"data": self.waiting[first:end], "next_page": str(end) if end < len(self.waiting) else None}
        )


@pytest.fixture
def ask() -> Iterator[Callable[..., str]]:
    """Runs `assent approvals` against an API, and types into the command. Returns the output."""
    clients: list[httpx2.Client] = []

    def run_approvals(api: Api, typed: str) -> str:
        clients.append(httpx2.Client(transport=httpx2.MockTransport(api), base_url="http://api"))
        command = click.Command("approvals", callback=lambda: run(Inbox(clients[-1])))
        return CliRunner().invoke(command, input=typed, catch_exceptions=False).output

    yield run_approvals
    for client in clients:
        client.close()


@pytest.mark.parametrize(
    ("kind", "typed", "decision"),
    [
        ("tool_call", "1\n", {"result": "allow"}),
        ("unknown_outcome", "1\nit printed 3\n", {"outcome": "happened", "result": "it printed 3"}),
        ("unknown_outcome", "2\n", {"outcome": "rerun"}),
        ("unknown_outcome", "3\n", {"outcome": "give_up"}),
    ],
)
def test_each_choice_decides_what_was_shown(ask: Callable[..., str], kind: str, typed: str, decision: dict[str, Any]) -> None:
    waiting = approval(kind=kind)
    api = Api(waiting)
    output = ask(api, typed)
    assert api.decided == [{**decision, "expected_input_sha256": waiting["input_sha256"]}]
    assert "Decided." in output


def test_the_session_s_events_are_shown_until_it_is_idle(ask: Callable[..., str]) -> None:
    output = ask(Api(approval()), "1\n")
    assert "result: two\nlines<U+001B>[2J\nagent: Done.\n✓ done\n" in output
    assert "never shown" not in output


@pytest.mark.parametrize("typed", ["9\n", "q\n", ""])
def test_skipping_quitting_and_hanging_up_decide_nothing(ask: Callable[..., str], typed: str) -> None:
    api = Api(approval())
    ask(api, typed)
    assert api.decided == []


def test_an_earlier_decision_of_another_person_is_shown(ask: Callable[..., str]) -> None:
    api = Api(approval())
    error = {"type": "error", "error": {"type": "conflict_error", "message": "Already denied by ann."}}
    api.refusal = httpx2.Response(409, json=error)
    assert "Not decided: Already denied by ann." in ask(api, "1\n")


def test_an_input_that_is_not_the_one_of_the_hash_is_never_offered() -> None:
    with pytest.raises(click.ClickException, match="not the one that would run"):
        list(describe(approval(input_canonical='{"command":"rm -rf /"}')))


def test_characters_that_a_terminal_would_obey_or_hide_are_spelled_out() -> None:
    assert visible("a\u202eb\x1b[2J\u200b\u00a0\u3164é 漢") == "a<U+202E>b<U+001B>[2J<U+200B><U+00A0><U+3164>é 漢"
    shown = "\n".join(describe(approval('{"command":"echo \u202e"}', prompt="Run\x9b1m")))
    assert "\u202e" not in shown
    assert "Run<U+009B>1m" in shown


def test_hidden_values_are_named_and_their_hash_is_not_checked() -> None:
    shown = "\n".join(describe(approval('{"pin":"«masked»"}', masked=["/pin"], input_sha256="0" * 64)))
    assert "  hidden    /pin: secrets, which the call receives\n" in shown


def test_what_a_card_shows_beside_the_call_is_shown_too() -> None:
    stakes = {"tool": "bash", "effect": "writes", "at_most_once": True, "at_client": False, "secrets": 0}
    denial = {"by": "Ben", "message": "Never on \u202eFriday.", "at": "2026-01-01T00:00:00Z", "approval_id": "appr_2"}
    precedent = {"kind": "git push", "is_first": False, "allows": 14, "edits": 0, "answers": 0, "denials": 1, "last_denial": denial}
    briefing = {"stakes": stakes, "last_words": "It is\ngreen.", "request": {"by": "Ben", "text": "Push."}, "since": None}
    seat = {"user_id": "user_1", "name": "Ben", "on_behalf_of": "Dora", "result": "allow"}
    panel = {
        "seats": [seat],
        "missing": 1,
        "awaits": "one more of finance",
        "people": [{"id": "user_2", "name": "Anna"}],
        "more": 3,
    }
    briefing |= {"changes": ["The file has changed."], "precedent": precedent, "panel": panel, "outcome": None}
    assert [click.unstyle(line) for line in briefing_lines(briefing)] == [
        "  stakes    may write, at most once",
        "  changed   The file has changed.",
        "  it says   It is green.",
        "  request   Ben: Push.",
        "  before    git push: allowed 14, denied 1; last denied by Ben: “Never on <U+202E>Friday.”",
        "  people    Ben for Dora allowed; one more of finance (Anna, 3 more)",
    ]
    assert list(briefing_lines({})) == []


@pytest.mark.parametrize(
    ("event", "ending", "line"),
    [
        ({"result": "allow"}, "Allowed by Anna", "✓ Allowed by Anna"),
        ({"result": "deny"}, "Denied by Anna", "✗ Denied by Anna"),
        ({"result": "deny", "outcome": "give_up"}, "Given up by Anna", f"{GIVEN_UP.character} Given up by Anna"),
        ({"result": "allow", "outcome": "rerun"}, "Sent to run again by Anna", "✓ Sent to run again by Anna"),
    ],
)
def test_a_decision_has_the_glyph_of_its_card(event: dict[str, str], ending: str, line: str) -> None:
    api = httpx2.MockTransport(lambda _request: httpx2.Response(200, json={"ending": ending}))
    with httpx2.Client(transport=api, base_url="http://assent") as http:
        assert click.unstyle(decision_line(Inbox(http), event | {"approval_id": "appr_1"})) == line


def test_who_may_decide_and_the_votes_so_far_are_shown() -> None:
    vote = {"by": "user:user_1", "on_behalf_of": "user:user_2", "result": "allow", "at": "2026-01-01T00:00:00Z"}
    demands = {"required_approvals": 2, "approvers": [["group:grp_1", "user:user_1"]], "four_eyes": True, "people_only": True}
    shown = "\n".join(describe(approval(votes=[vote], started_by=["user:user_3"], **demands)))
    assert "  approvers 1 of 2 approvals, not by who started the run; people sign in and vote" in shown
    assert "user_" not in shown, "the briefing has the names"
    assert "  approvers" not in "\n".join(describe(approval()))


@pytest.mark.parametrize(("level", "words"), [(0, "then others may decide, too"), (1, "then the run ends")])
def test_each_level_of_an_escalation_says_what_its_own_deadline_does(level: int, words: str) -> None:
    escalation = {"level": level, "levels": [{"approvers": [], "timeout_seconds": 900}], "then": "end_run"}
    shown = "\n".join(describe(approval(on_timeout="escalate", escalation=escalation)))
    assert words in shown.partition("  deadline  ")[2].partition("\n")[0]


def test_the_directory_of_a_command_is_shown_beside_it() -> None:
    shown = "\n".join(describe(approval('{"command":"ls","working_directory":"a\u202e"}')))
    assert "\n  directory a<U+202E>\n" in shown
    assert "  directory" not in "\n".join(describe(approval()))


def test_an_empty_list_says_that_nothing_waits(ask: Callable[..., str]) -> None:
    assert ask(Api(), "") == "Nothing waits for a decision.\n"


def test_ten_thousand_that_wait_cost_no_more_than_a_hundred(ask: Callable[..., str]) -> None:
    api = Api(*(approval(id=f"appr_{number:05}") for number in range(10_000)))
    assert "1 of 100+  Run shell command" in ask(api, "q\n")
    assert api.pages == 5


def test_an_absent_api_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ASSENT_API_KEY", raising=False)
    result = CliRunner().invoke(main, ["approvals", "--data-dir", str(tmp_path)])
    assert result.exit_code == 1
    remedy = f"start it with `{assent_command()} up --data-dir {tmp_path}`, or set ASSENT_URL and ASSENT_API_KEY"
    assert result.output == f"Error: Assent is not running in {tmp_path}: {remedy}\n"


@pytest.mark.parametrize("url", ["foo", "localhost:8471", "http://", "https://a:b"])
def test_an_address_of_no_server_is_refused_by_its_name(tmp_path: Path, url: str) -> None:
    words = ["approvals", "--data-dir", str(tmp_path), "--url", url]
    result = CliRunner().invoke(main, words, env={"ASSENT_API_KEY": "key"})
    assert result.exit_code == 1
    assert f"ASSENT_URL or --url is '{url}'" in result.output
