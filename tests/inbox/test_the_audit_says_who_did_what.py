"""The page of the audit says each act in a sentence, with names and links; it folds routine acts, and finds acts by names."""

import re
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import httpx2
import people
import pytest
from inbox.waiting import asked
from own_database import Clock
from people import Somebody
from rows.spending import limit
from rows.stage import Stage, call, say

from api.desk.audit import actions, reading
from api.desk.audit.reading import ActQuery, read
from models.audit.acts import ROUTINE
from models.database.transactions import transaction
from models.session.approval.row import Approval
from models.session.tool_call.row import ToolCall
from models.workspace.agent import Agent
from models.workspace.api_key import ApiKey, NewKey
from models.workspace.spend_limit import SpendLimit

_TAG, _SPACE = re.compile(r"<[^>]*>"), re.compile(r"\s+")
_NOTED = re.compile(r"(?:\.note|\brecord|\.begin)\(\s*[^\"()]*?\"([a-z_]+\.[a-z_]+)\"")
MODELS = Path(actions.__file__).parents[3] / "models"
COMMAND = "git push origin v4.2.0"


def lines(client: httpx2.Client, **query: str) -> list[str]:
    """The sentences of the page, newest first."""
    response = client.get("/inbox/audit", params=query)
    assert response.status_code == 200, response.text
    rows = re.findall(r"<span class=\"said\">(.*?)</span>", response.text, re.DOTALL)
    return [_SPACE.sub(" ", unescape(_TAG.sub("", row))).strip() for row in rows]


def faults(client: httpx2.Client, **query: str) -> list[str]:
    """What the page says beside fields."""
    return [unescape(text) for text in re.findall(r"class=\"fault\"[^>]*>([^<]*)<", client.get("/inbox/audit", params=query).text)]


@pytest.fixture
def anna(stage: Stage) -> Somebody:
    return people.member(stage, "admin", email="anna@example.com")


@pytest.fixture
def push(stage: Stage, anna: Somebody, api: str) -> Approval:
    """A push by the agent Release captain, that anna allowed and that ran."""
    [approval] = asked(stage, call(command=COMMAND))
    with transaction(stage.workspace_id) as db:
        db.write("UPDATE session SET title = 'Release 4.2' WHERE id = %(id)s", id=approval.session_id)
        Agent.find(db, approval.agent_id).update(db, stage.principal, {"name": "Release captain"})
    with anna.client(api) as client:
        assert client.post(f"/v1/approvals/{approval.id}/decision", json={"result": "allow"}).status_code == 200
    held = stage.claim_call(stage.get(ToolCall, approval.tool_call_id))
    assert held
    stage.finish_call(held, content=[say("stdout:\nDone.\n"), say("exit code: 0")])
    return approval


def test_every_act_that_the_code_writes_has_a_sentence() -> None:
    written = {action for file in MODELS.rglob("*.py") for action in _NOTED.findall(file.read_text("utf-8"))}
    assert len(written) > 50
    assert written - set(actions.ACTS) == set(ROUTINE) - set(actions.ACTS) == set()


@pytest.mark.parametrize("about", ["decisions", "access", "settings"])
def test_what_people_do_is_sorted_by_an_index(about: str) -> None:
    assert ActQuery(actions=actions.actions_about(about)).index


def test_an_act_names_who_did_it_and_to_what(stage: Stage, anna: Somebody, push: Approval, api: str) -> None:
    with anna.client(api) as client:
        with transaction(stage.workspace_id) as db:
            ApiKey.create(db, NewKey("Backend", scopes=frozenset({"read"})), by=anna.principal)
        everything = lines(client)
        assert everything[0] == "Anna created the key Backend"
        assert f"Anna allowed {COMMAND} of Release captain" in everything
        page = client.get("/inbox/audit").text
        assert f'<a href="/inbox/approvals/{push.id}"><code>{COMMAND}</code></a>' in page
        assert f'<a href="/inbox/agents/{push.agent_id}">Release captain</a>' in page
        assert lines(client, about="settings")[0] == "An API key that is gone changed the agent Release captain"


def test_a_spend_limit_is_told_with_its_amount_and_for_whom(stage: Stage, anna: Somebody, push: Approval, api: str) -> None:
    limit(stage, "500")
    limit(stage, "7.5", ("agent", push.agent_id), "weekly")
    row = limit(stage, None, ("user", anna.person_id), "daily")
    with transaction(stage.workspace_id) as db:
        SpendLimit.remove(db, anna.principal, row.id)
    with anna.client(api) as client:
        assert lines(client, about="settings")[:4] == [
            "Anna deleted a spend limit: no limit a day for anna",
            "An API key that is gone set a spend limit: no limit a day for anna",
            "An API key that is gone set a spend limit of $7.50 a week for Release captain",
            "An API key that is gone set a spend limit of $500.00 a month for all sessions",
        ]


def test_a_grant_is_told_with_code_as_code_and_cut_between_words(stage: Stage, anna: Somebody, api: str) -> None:
    [approval] = asked(stage, call(command=COMMAND))
    stage.decide(approval, result="allow", scope="always", match="bash(git push *)")
    with anna.client(api) as client:
        page = client.get("/inbox/audit", params={"action": "grant.given"}).text
    assert "every bash command that starts with <code>git push</code>, where it is sure which commands run, and all…" in page


def test_one_line_says_a_vote_that_decided(anna: Somebody, push: Approval, api: str) -> None:
    with anna.client(api) as client:
        decisions = [f"Anna allowed {COMMAND} of Release captain", f"Release captain asked about {COMMAND}"]
        assert lines(client, about="decisions") == decisions
        page = client.get("/inbox/audit", params={"about": "decisions"}).text
        assert page.count("<code>approval.voted</code>") == 1, "its details have both acts"
        export = client.get("/inbox/audit/export").text
        assert export.count('"approval.voted"') == export.count('"approval.decided"') == 1


def test_routine_acts_are_folded_unless_asked_for(anna: Somebody, push: Approval, api: str) -> None:
    finished, asked_model = f"bash finished: {COMMAND}, exit 0", "Release captain asked the model in Release 4.2"
    with anna.client(api) as client:
        assert not {finished, asked_model} & set(lines(client))
        assert {finished, asked_model} <= set(lines(client, about="all"))
        assert lines(client, action="tool_call.finished") == [finished]
        assert finished in lines(client, about="work")


QUERIES: list[tuple[dict[str, str], int]] = [
    ({"who": "Anna"}, 1),
    ({"who": "ANNA@example.com"}, 1),
    ({"who": "ann"}, 1),
    ({"who": "Assent"}, 1),
    ({"agent": "release captain"}, 2),
    ({"session": "Release 4.2"}, 2),
    ({"q": "push origin"}, 2),
    ({"q": "lease 4"}, 2),
    ({"q": "100%"}, 0),
    ({"q": "_it"}, 0),
    ({"q": "\0'\"\\"}, 0),
    ({"q": "\u202e\u05d4\u05d3"}, 0),
    ({"q": "x" * 5_000}, 0),
    ({"from": "2020-01-01", "to": "2020-12-31"}, 0),
    ({"from": "2020-01-01", "to": "2199-12-31"}, 2),
]
"""Fields of the form, and how many decisions they leave."""


def test_decisions_are_found_by_names_words_and_days(anna: Somebody, push: Approval, api: str, subtests: pytest.Subtests) -> None:
    with anna.client(api) as client:
        for query, number in QUERIES:
            with subtests.test(str(query)[:60]):
                assert len(lines(client, about="decisions", **query)) == number
                assert faults(client, **query) == []


def test_the_heading_of_a_day_leads_to_the_acts_of_that_day_that_fit_the_filters(
    stage: Stage, push: Approval, api: str, clock: Clock
) -> None:
    clock.advance(2 * 86_400)
    asked(stage, call(command=COMMAND))
    with people.member(stage, "admin").client(api) as client:
        every_line = lines(client, about="decisions", q="push")
        page = client.get("/inbox/audit", params={"about": "decisions", "q": "push"}).text
        [(_, today), (path, _)] = re.findall(r'<h2 class="day"><a href="([^"]*)">([^<]*)', page)
        assert today == "Today"
        assert lines(client, **dict(parse_qsl(urlsplit(unescape(path)).query))) == every_line[1:]
        assert '<h2 class="day"><a' not in client.get(unescape(path)).text


def test_what_is_not_clear_is_said_beside_the_field(stage: Stage, anna: Somebody, push: Approval, api: str) -> None:
    people.member(stage, email="anna.berg@example.com")
    with anna.client(api) as client:
        assert faults(client, who="ann") == ["“ann” fits 2. Which one?"]
        assert "anna.berg, anna.berg@example.com" in client.get("/inbox/audit?who=ann").text
        assert faults(client, who="Nobody") == [
            "Nobody here has this name: “Nobody”. Choose somebody from the list, or type an e-mail address."
        ]
        assert faults(client, agent="x", session="y") == [
            "No agent has this name: “x”. Choose one from the list.",
            "No session has this title: “y”. Choose one from the list, or paste a session's id.",
        ]
        assert faults(client, **{"from": "friday"}) == ["“friday” is no day. Write it as 2026-11-20."]
        for earlier in ("2026-11-19", "20261119"):
            assert faults(client, **{"from": "2026-11-20", "to": earlier}) == ["This day is before the first one."]
        assert lines(client, who="Nobody") == []
        assert faults(client, action="zz") == ["No action has this name: “zz”. Choose one from the list."]
        assert "Zz" not in client.get("/inbox/audit?action=zz").text


def test_a_group_without_acts_asks_for_no_fewer_filters(anna: Somebody, push: Approval, api: str) -> None:
    with anna.client(api) as client:
        assert "Acts about “Seals” stand here, newest first." in unescape(client.get("/inbox/audit?about=seals").text)
        assert "Try other words, or fewer filters." in client.get("/inbox/audit?about=seals&q=x").text


def test_a_search_goes_on_from_where_it_stopped(
    stage: Stage, anna: Somebody, push: Approval, api: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "SEARCHED", 3)
    monkeypatch.setattr(reading, "PAGE", 2)

    def pages(**wanted: Any) -> list[list[str]]:
        cursor, result = None, []
        while True:
            with transaction(stage.workspace_id) as db:
                page = read(db, ActQuery(**wanted), cursor)
            result.append([f"{act.chain} {act.seq}" for act in page.rows])
            cursor = page.after
            if cursor is None:
                return result

    for wanted in ({"words": "push"}, {"words": "push", "chain": push.session_id}, {"words": "push", "routine": True}):
        [*parts] = pages(**wanted)
        acts = [act for part in parts for act in part]
        assert len(parts) > 2
        assert len(acts) == len(set(acts)) >= 2
    everything = [act for part in pages(routine=True) for act in part]
    with transaction(stage.workspace_id) as db:
        [(number,)] = db.rows("SELECT count(*) FROM audit")
    assert len(everything) == len(set(everything)) == number - 1, "all but the vote"
