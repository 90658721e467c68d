"""Every transaction that changes something has crash points. A new verb that commits belongs into the table."""

from pathlib import Path

from crashes.journey import EFFECT, Journey
from mcp_servers.lying import Liar


def test_every_commit_of_a_worker_is_a_boundary(journey: Journey, liar: Liar, crash_folder: Path) -> None:
    """The workers write down each writing commit whose verb is not in the table."""
    journey.beats = True
    journey.begin(bash="always_ask", servers={"far": liar.url}).say("fail 529 1 times", EFFECT, "then", "say Done.")
    journey.decide(result="allow")
    journey.until_idle()
    unlisted = crash_folder / "unlisted"
    assert not unlisted.exists(), unlisted.read_text()
