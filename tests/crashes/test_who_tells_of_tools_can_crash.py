"""A process that announces toolsets, stores a listing or marks it as changed may die, and the tools are still known."""

import contextlib
from pathlib import Path

import psutil
import psycopg
import pytest
from crashes.boundaries import of
from crashes.effects import SERVERS, Ledger, call
from crashes.effects_toolset import effects
from crashes.journey import Journey
from crashes.processes import Process, wait_for
from mcp_servers.lying import TOOL, Liar, Request
from own_database import DatabaseUrls

from models.database.transactions import transaction
from models.settings import settings
from models.workspace import toolset
from models.workspace.toolset import Listing
from workers.tools import sources


@pytest.mark.parametrize("boundary", of("keep_listing"))
def test_a_listing_is_fetched_until_it_is_stored(journey: Journey, liar: Liar, boundary: str) -> None:
    """The turn that fetched the listing is taken back, and goes on with the stored one."""
    journey.armed.at(boundary)
    journey.begin(servers={"far": liar.url}, far="always_allow").say("call mcp__far__act {}", "then", "say Done.")
    journey.until_crashed()
    seen = journey.until_idle()
    assert [t.attempt for t in seen.turns] == [2, 1]
    assert seen.result() == [{"type": "text", "text": "acted"}]
    assert len(liar.calls) == 1
    assert [method for method, *_ in liar.heard].count("tools/list") == (2 if boundary == "keep_listing.before_commit" else 1)


@pytest.mark.parametrize("boundary", of("mark_stale"))
def test_a_change_of_a_listing_is_noticed_at_once_or_by_the_listing_s_age(
    journey: Journey, mcp_url: str, boundary: str, tmp_path: Path
) -> None:
    """The process that hears of the change dies with its call. If it marked nothing, the listing is fetched by its age."""
    tool, go = boundary.replace(".", "_"), tmp_path / "go"
    journey.begin(servers={"far": mcp_url}, far="always_ask")
    journey.say(f'call mcp__far__grow {{"name": "{tool}", "until": "{go}"}}', "then", "say Grown.")
    journey.armed.at(boundary)
    journey.decide(result="allow")
    journey.until_crashed()
    go.touch()
    is_marked = boundary != "mark_stale.before_commit"
    assert bool(journey.stage.get(Listing, journey.stage.workspace_id, mcp_url).changed_at) == is_marked
    journey.settle_unknown(happened=True)
    journey.until_idle()
    if not is_marked:
        journey.later(settings().mcp_listing_seconds)
    journey.say(f"call mcp__far__{tool} {{}}", "then", "say Done.")
    # A process that called it would hear of the next test's change.
    journey.decide(result="deny")
    assert [(c.tool, c.status) for c in journey.until_idle().calls] == [("grow", "done"), (tool, "denied")]


def test_a_worker_s_toolsets_are_announced_though_the_announcer_dies(
    journey: Journey, crashing_worker: Process, crash_folder: Path
) -> None:
    """Each time the worker starts another program to announce them, and their calls run."""
    ledger = Ledger(crash_folder / "effects")
    journey.begin(servers=SERVERS, till="always_allow")
    journey.armed.at(*of("announce"))
    announcing(crashing_worker).kill()
    journey.until_crashed()
    assert announcing(crashing_worker)
    with transaction() as db:
        assert toolset.names(db) == sorted([effects.name, *sources.WORKER_TOOLSETS])
    journey.say(call("charge"), "then", "say Done.")
    seen = journey.until_idle()
    assert ledger.effects(journey.session_id) == len(seen.attempts) == 1


def test_a_turn_that_cannot_read_its_tools_is_tried_again_at_once(
    journey: Journey, liar: Liar, clean_database: DatabaseUrls
) -> None:
    """The database refuses between the turn's claim and its request. The turn ends then, and not when its lease does."""
    journey.begin(servers={"far": liar.url}, far="always_allow").say("say Done.")
    journey.until_idle()
    with psycopg.connect(clean_database.owner, autocommit=True) as db:

        def refuse(request: Request) -> None:
            db.execute("REVOKE SELECT ON listing FROM assent_app")
            request.tools(TOOL)

        try:
            liar.answers["tools/list"] = refuse
            journey.later(settings().mcp_listing_seconds)
            journey.say("say Done.")
            wait_for("the turn is queued again", lambda: journey.stage.events(journey.session_id, "session.error"))
        finally:
            db.execute("GRANT SELECT ON listing TO assent_app")
    assert [(turn.status, turn.attempt, turn.losses) for turn in journey.until_idle().turns] == [("done", 1, 0), ("done", 2, 0)]


def announcing(worker: Process) -> psutil.Process:
    """The process that announces the worker's toolsets."""

    def announces(process: psutil.Process) -> bool:
        with contextlib.suppress(psutil.NoSuchProcess):
            return "crashes.announcing" in process.cmdline()
        return False

    return wait_for("a process announces", lambda: next(filter(announces, worker.family), None))
