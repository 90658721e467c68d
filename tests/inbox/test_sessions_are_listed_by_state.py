"""The list says in which state each session is and for whom it waits, and shows those of one state, agent or person."""

from inbox.visitor import Visitor
from own_database import Clock
from people import group, member
from playwright.sync_api import expect
from rows.stage import Stage, call, say

from models.workspace.row import Workspace


def test_a_state_is_a_word_and_a_wait_names_whom(plain: Visitor, stage: Stage, clock: Clock) -> None:
    finance = group(stage, name="finance")
    waiting = stage.session(bash="always_ask", approval={"approvers": [f"group:{finance}"]})
    stage.message(waiting, "Pay the bill.")
    stage.reply(waiting, say("I pay."), call(command="pay"))
    clock.advance(12 * 60)
    done, cut_off, refused, working = (stage.session() for _ in range(4))
    for session_id, reason in ((done, "end_turn"), (cut_off, "max_tokens"), (refused, "refusal")):
        stage.message(session_id, "Tell me.")
        stage.reply(session_id, say("No."), stop_reason=reason)
    stage.message(working, "Look around.")
    plain.open("/inbox/sessions")
    rows = plain.page.locator("tbody tr")
    expect(rows).to_have_count(5)
    states = {waiting: "waiting", done: "done", cut_off: "cut off", refused: "refused", working: "working"}
    for session_id, word in states.items():
        expect(plain.page.locator(f"#{session_id} .chip")).to_have_text(word)
    expect(plain.page.locator(f"#{waiting}")).to_contain_text("for finance, 12 minutes ago")
    expect(plain.page.locator(f"#{waiting} th")).to_contain_text("Pay the bill.")
    expect(plain.page.locator(f"#{waiting} .last-line")).to_have_text("I pay.")
    tabs = {"Working 1": [working], "Waiting 1": [waiting], "Needs attention 2": [refused, cut_off]}
    for tab, session_ids in tabs.items():
        plain.page.get_by_role("link", name=tab).click()
        expect(rows).to_have_count(len(session_ids))
        assert [row.get_attribute("id") for row in rows.all()] == session_ids
    expect(plain.page.locator("#nav-sessions")).to_have_text("2 needing attention")
    expect(plain.page.locator(".rail .workspace")).to_have_text(stage.get(Workspace, stage.workspace_id).name)
    plain.page.get_by_role("link", name="Last day").click()
    expect(rows).to_have_count(2)
    plain.page.get_by_role("link", name="Working").click()
    plain.page.get_by_role("link", name="Any time").click()
    expect(rows).to_have_id(working)


def test_the_list_is_narrowed_to_an_agent_and_a_person(plain: Visitor, stage: Stage) -> None:
    anna = member(stage, "developer", email="anna@example.com")
    theirs, other = stage.session(on_behalf_of=anna.person_id), stage.session()
    plain.open("/inbox/sessions")
    expect(plain.page.locator("tbody tr")).to_have_count(2)
    plain.page.get_by_label("Person").select_option("anna")
    plain.button("Show").click()
    expect(plain.page.locator("tbody tr")).to_have_id(theirs)
    plain.open(f"/inbox/sessions?agent={stage.read(other).agent_id}")
    expect(plain.page.locator("tbody tr")).to_have_id(other)
    expect(plain.page.get_by_text("the newest 20,000 sessions")).to_be_visible()
    plain.open("/inbox/sessions?agent=agent_none&tab=working&page=nonsense")
    expect(plain.page.locator("tbody tr")).to_have_count(0)
