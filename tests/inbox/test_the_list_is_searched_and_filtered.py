"""The list is filtered by words, tool, agent, session and group, and shows nothing that the person may not see."""

from collections.abc import Callable

import people
import pytest
from inbox.plain import Plain
from inbox.waiting import asked
from own_database import Clock
from rows.stage import Stage, call
from rows.voting import vote

from models.session.approval.row import Approval
from models.session.locked import Locked


def name_session(stage: Stage, approval: Approval, title: str) -> None:
    """Give a session a title."""

    def rename(locked: Locked) -> None:
        locked.session.title = title

    stage.locked(approval.session_id, rename)


@pytest.fixture
def rows(stage: Stage) -> dict[str, Approval]:
    """One approval of each of three sessions."""
    [push] = asked(stage, call(command="git push 100%"))
    [lists] = asked(stage, call(command="ls -l"))
    [write] = asked(stage, call("write", file_path="notes.txt", content="x"), write="always_ask")
    name_session(stage, push, "Release 2.4")
    return {"push": push, "lists": lists, "write": write}


@pytest.mark.parametrize(
    ("label", "value", "remaining"),
    [
        ("Search prompts and tools", "PUSH 100%", ["push"]),
        ("Search prompts and tools", "%", ["push"]),
        ("Search prompts and tools", "bash", ["push", "lists"]),
        ("Search prompts and tools", "nothing of the kind", []),
        ("Tool", "write", ["write"]),
        ("Session", "Release 2.4", ["push"]),
    ],
)
def test_a_filter_leaves_the_matching_rows(
    plain: Plain, rows: dict[str, Approval], label: str, value: str, remaining: list[str]
) -> None:
    plain.open("/inbox?show=all")
    plain.fill(label, value)
    plain.press("Show")
    assert [row.get("id") for row in plain.rows] == [rows[name].id for name in remaining]
    assert value in plain.page.one("a", "remove this filter")
    plain.open(plain.page.one("a", "remove this filter").get("href"))
    assert len(plain.rows) == len(rows)


def test_the_list_is_filtered_by_agent_and_by_group(plain: Plain, stage: Stage, rows: dict[str, Approval]) -> None:
    finance = people.group(stage)
    [theirs] = asked(stage, approval={"approvers": [f"group:{finance}"]})
    plain.open(f"/inbox?show=all&group={finance}")
    assert [row.get("id") for row in plain.rows] == [theirs.id]
    plain.open(f"/inbox?show=all&agent={rows['write'].agent_id}")
    assert [row.get("id") for row in plain.rows] == [rows["write"].id]


def test_the_choices_name_nothing_that_the_person_may_not_see(visit_without_scripts: Callable[..., Plain], stage: Stage) -> None:
    finance = people.group(stage)
    [theirs] = asked(
        stage, call("write", file_path="a", content="b"), write="always_ask", approval={"approvers": [f"group:{finance}"]}
    )
    name_session(stage, theirs, "Salaries")
    approver = visit_without_scripts("approver")
    approver.open("/inbox?show=all")
    assert "Salaries" not in approver.response.text
    assert approver.page.texts("#tool option") == ["All"]
    member = visit_without_scripts("approver", somebody=people.member(stage, groups=[finance]))
    member.open("/inbox?show=all")
    assert "Salaries" in member.response.text


def test_decided_calls_are_filtered_by_who_decided_and_on_which_day(api: str, stage: Stage, clock: Clock) -> None:
    anna, ben = (people.member(stage, "admin", email=f"{name}@example.com") for name in ("anna", "ben"))
    rows = {name: asked(stage, call(command=f"echo {name}"))[0] for name in ("first", "second")}
    vote(stage, anna, rows["first"])
    vote(stage, ben, rows["second"], "deny")
    [rows["both"]] = asked(stage, call(command="echo both"), approval={"required_approvals": 2})
    vote(stage, anna, rows["both"])
    vote(stage, ben, rows["both"])
    clock.advance(86_400)
    rows["third"] = asked(stage, call(command="echo third"))[0]
    vote(stage, anna, rows["third"])
    day = f"{stage.get(Approval, rows['third'].id).decided_at:%Y-%m-%d}"

    with people.member(stage, "admin").client(api) as client:

        def remaining(query: str) -> set[str]:
            page = client.get(f"/inbox?show=decided&{query}").text
            return {name for name, row in rows.items() if f'<li id="{row.id}"' in page}

        assert remaining(f"person={anna.person_id}") == {"first", "third"}
        assert remaining(f"person={ben.person_id}") == {"second", "both"}, "whose vote was the last"
        assert remaining(f"day={day}") == {"third"}
        assert remaining(f"person={ben.person_id}&day={day}") == set()
        assert remaining("day=tomorrow") == set(rows), "what is no day is no filter"
        page = client.get(f"/inbox?show=decided&person={anna.person_id}&day={day}").text
        assert "Last decided by anna <span" in page
        assert "Today <span" in page
        assert f'value="{anna.person_id}" selected>anna</option>' in page
        assert "Last decided by anna" not in client.get(f"/inbox?person={anna.person_id}").text, (
            "only decided calls have the filter"
        )
