"""The list says in which state each session is and for whom it waits, and shows those of one state, agent or person."""

from inbox.plain import Plain
from own_database import Clock
from people import group, member
from rows.stage import Stage, call, say

from models.workspace.row import Workspace


def lines(plain: Plain) -> list[str]:
    """The ids of the listed sessions."""
    return [row.get("id") for row in plain.page.all("tbody tr")]


def test_a_state_is_a_word_and_a_wait_names_whom(plain: Plain, stage: Stage, clock: Clock) -> None:
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
    assert len(lines(plain)) == 5
    states = {waiting: "waiting", done: "done", cut_off: "cut off", refused: "refused", working: "working"}
    for session_id, word in states.items():
        assert plain.page.one(f"#{session_id} .chip").text == word
    assert "for finance, 12 minutes ago" in plain.page.one(f"#{waiting}")
    assert "Pay the bill." in plain.page.one(f"#{waiting} th")
    assert plain.page.one(f"#{waiting} .last-line").text == "I pay."
    tabs = {"Working 1": [working], "Waiting 1": [waiting], "Needs attention 2": [refused, cut_off]}
    for tab, session_ids in tabs.items():
        plain.follow(tab)
        assert lines(plain) == session_ids
    assert plain.page.one("#nav-sessions").text == "2 needing attention"
    assert plain.page.one(".rail .workspace").text == stage.get(Workspace, stage.workspace_id).name
    plain.follow("Last day")
    assert len(lines(plain)) == 2
    plain.follow("Working")
    plain.follow("Any time")
    assert lines(plain) == [working]


def test_the_list_is_narrowed_to_an_agent_and_a_person(plain: Plain, stage: Stage) -> None:
    anna = member(stage, "developer", email="anna@example.com")
    theirs, other = stage.session(on_behalf_of=anna.person_id), stage.session()
    plain.open("/inbox/sessions")
    assert len(lines(plain)) == 2
    plain.fill("Person", "anna")
    plain.press("Show")
    assert lines(plain) == [theirs]
    plain.open(f"/inbox/sessions?agent={stage.read(other).agent_id}")
    assert lines(plain) == [other]
    assert "the newest 20,000 sessions" in plain.page.one("main")
    plain.open("/inbox/sessions?agent=agent_none&tab=working&page=nonsense")
    assert lines(plain) == []
