"""The inbox as a page shows what waits and what would run, all of it, and never as markup; in a real browser."""

import re
from typing import Any

import httpx
from doors.browser import Inbox
from doors.served import SCRIPTS, Caller
from doors.waiting import announced, approval_of, asked, decide, running, secretive
from playwright.sync_api import expect
from rows.stage import Stage, call

from models.audit.acts import Audit
from models.database.transactions import transaction
from models.pure.canonical import digest, spelled
from models.session.tool_call import ToolCall


def test_what_waits_comes_and_goes_by_itself_the_longest_waiting_first(person: Inbox, caller: Caller, stage: Stage) -> None:
    expect(person.page.get_by_text("Nothing waits for a decision.")).to_be_visible()
    [first] = asked(caller, stage, call(command="echo first"))
    asked(caller, stage, call(command="echo second"))
    expect(person.rows).to_have_count(2)
    expect(person.rows.first).to_contain_text("Run shell command: echo first")
    expect(person.page).to_have_title("(2) Assent")
    decide(caller, first, result="deny")
    expect(person.rows).to_have_count(1)
    expect(person.rows.first).to_contain_text("echo second")


def test_more_than_a_page_of_them_is_there_when_asked_for(person: Inbox, caller: Caller, stage: Stage) -> None:
    asked(caller, stage, *[call(command=f"echo {n}") for n in range(23)])
    expect(person.page).to_have_title("(20+) Assent")
    person.button("Show more").click()
    expect(person.rows).to_have_count(23)
    expect(person.button("Show more")).to_be_hidden()


def test_what_was_decided_is_found_again(person: Inbox, caller: Caller, stage: Stage, waiting: ToolCall) -> None:
    decide(caller, waiting, result="deny", deny_message="Not now.")
    person.page.get_by_role("combobox").select_option("denied")
    expect(person.rows).to_have_count(1)
    expect(person.rows.first).to_contain_text(re.compile("denied .* by "))
    person.page.get_by_placeholder("any tool").fill("read")
    person.page.keyboard.press("Enter")
    expect(person.page.get_by_text("None.")).to_be_visible()


def test_a_server_that_is_away_is_told_and_waited_for(person: Inbox, waiting: ToolCall) -> None:
    expect(person.rows).to_have_count(1)
    person.page.context.set_offline(True)
    expect(person.trouble).to_contain_text("does not answer")
    expect(person.rows).to_have_count(1)
    person.page.context.set_offline(False)
    expect(person.trouble).to_be_empty()


def test_a_view_that_was_left_asks_no_more(person: Inbox, shown: Any, waiting: ToolCall) -> None:
    expect(person.button("Allow")).to_be_visible()
    person.open("")
    expect(person.rows).to_have_count(1)
    asked_for: list[str] = []
    person.page.on("request", lambda request: asked_for.append(request.url))
    for _ in range(2):
        with person.page.expect_request("**/v1/approvals?**"):
            pass
    assert not [url for url in asked_for if shown["id"] in url]


def test_nothing_that_a_model_writes_is_markup_or_hides_another_character(person: Inbox, caller: Caller, stage: Stage) -> None:
    nasty = "<img src=x onerror=alert(1)><script>alert(2)</script> \u202egpj.exe\u00a0\u3164"
    [found] = asked(caller, stage, call(command=nasty))
    approval = approval_of(caller, found)
    person.open(approval["id"])
    escaped = nasty.replace("\u202e", "\\u202e").replace("\u00a0", "\\xa0").replace("\u3164", "\\u3164")  # by the server
    seen = nasty.replace("\u202e", "<U+202E>").replace("\u00a0", "<U+00A0>").replace("\u3164", "<U+3164>")
    expect(person.page.get_by_role("heading", level=1)).to_have_text(f"Run shell command: {escaped}")
    expect(person.page.locator("dl.input pre")).to_have_text(seen)
    person.unfold("Edit the input, then allow")
    assert "\\u202e" in person.page.get_by_role("textbox", name="Input").input_value()
    person.open("")
    expect(person.rows.first).to_contain_text(escaped)
    assert person.page.locator("img, main script").count() == 0


def test_what_a_tool_asks_is_no_markup_and_hides_no_character(person: Inbox, caller: Caller, stage: Stage) -> None:
    found = announced(caller, stage)
    asks = {
        "form": {"message": "For \u202ewhom?", "schema": {"type": "object", "properties": {"a\u202eb": {"type": "string"}}}},
        "page": {"message": "There.", "url": "javascript:alert(1)"},
    }
    stage.finish_call(running(caller, stage, found), question={"requests": asks, "state": None})
    person.open(approval_of(caller, found)["id"])
    expect(person.page.get_by_text("For <U+202E>whom?")).to_be_visible()
    expect(person.page.get_by_label("a<U+202E>b")).to_be_visible()
    expect(person.page.get_by_text("javascript:alert(1)")).to_be_visible()
    assert person.page.get_by_role("link", name="javascript").count() == 0


def test_names_and_nested_texts_hide_no_character_and_no_type(person: Inbox, caller: Caller, stage: Stage) -> None:
    approval = approval_of(caller, secretive(caller, stage, amount=5))
    nasty = {"a\u202eb": {"c": "\u202e"}, "text": "5", "number": 5}
    said = approval | {"input": nasty, "input_canonical": spelled(nasty), "input_sha256": digest(nasty)}
    person.page.route(f"**/v1/approvals/{approval['id']}", lambda route: route.fulfill(json=said))
    person.open(approval["id"])
    fields = person.page.locator("dl.input")
    expect(fields).to_contain_text("a<U+202E>b")
    expect(fields).to_contain_text('"c": "\\u202e"')
    expect(fields.get_by_text("(text)")).to_have_count(1)


def test_an_input_is_shown_field_by_field_with_its_lines(person: Inbox, caller: Caller, stage: Stage) -> None:
    [found] = asked(caller, stage, call("write", file_path="a.py", content="def f():\n\treturn 1\n"))
    person.open(approval_of(caller, found)["id"])
    expect(person.page.locator("dl.input pre").filter(has_text="def f")).to_have_text("def f():\n\treturn 1\n", use_inner_text=True)


def test_what_led_to_it_and_what_comes_of_it_is_beside_it(
    person: Inbox, caller: Caller, stage: Stage, shown: Any, waiting: ToolCall
) -> None:
    told = person.page.locator(".told")
    expect(told).to_contain_text("Do it.")
    stage.finish_call(running(caller, stage, waiting), "3 files")
    expect(told).to_contain_text("3 files")
    assert "allowed" in person.decided("allowed")


def test_secrets_are_hidden_until_somebody_who_may_asks_for_them(person: Inbox, caller: Caller, stage: Stage) -> None:
    found = secretive(caller, stage)
    person.open(approval_of(caller, found)["id"])
    fields = person.page.locator("dl.input")
    expect(fields).to_contain_text("«masked»")
    expect(fields).not_to_contain_text("4711")
    person.page.get_by_role("button", name="Show them").click()
    expect(fields).to_contain_text("4711")
    with transaction(stage.workspace_id) as db:
        assert len(db.find(Audit, "WHERE action = 'approval.revealed'")) == 1


def test_it_is_files_that_run_nothing_from_elsewhere(api: str) -> None:
    page = httpx.get(f"{api}/inbox", trust_env=False)
    parts = [httpx.get(f"{api}{path}", trust_env=False) for path in SCRIPTS]
    for answer in [page, *parts]:
        assert answer.status_code == 200
        policy = answer.headers["content-security-policy"]
        for part in ("default-src 'none'", "script-src 'self'", "frame-ancestors 'none'", "require-trusted-types-for 'script'"):
            assert part in policy
        assert not re.search(r"https?://", answer.text)
        assert "innerHTML" not in answer.text
