"""The workspace's newest approvals, as far as insights look at single ones: which calls are alike, and who decided in a row."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from models.database.rows import Db
from models.operate.insights.harm import may_harm
from models.pure.policy.likeness import in_words, pattern
from models.pure.policy.rules import Effect

NEWEST = 1000
"""Approvals that one look reads, so it takes the same time however many there are."""


@dataclass(frozen=True)
class RecentAsk:
    """One approval of the newest."""

    id: str
    tool: str
    agent_id: str | None
    likeness: str | None
    """Which calls are alike. None if no call waits to run."""
    status: str
    decided_by: str | None
    decided_at: datetime | None


@dataclass(frozen=True)
class AlikeAsks:
    """The approvals of calls that are alike."""

    words: str
    """What the calls do, for people."""
    tool: str
    asks: int
    allows: int
    denials: int
    waiting_id: str | None
    """The newest of them that waits; None if none does."""
    agent_id: str | None
    """The agent that asks most of them."""
    match: str
    """The text of a rule about such calls; empty if no single one covers them and no others."""

    @property
    def effect(self) -> Effect:
        """What such a rule may do at first: what people always said, but never an allow of commands that may harm; else ask."""
        if self.denials and not self.allows:
            return "deny"
        words = tuple(self.words.split()) if self.tool == "bash" else ()
        return "allow" if self.allows and not self.denials and words and not may_harm(words, is_open=True) else "ask"


def newest(db: Db, agent_id: str = "") -> list[RecentAsk]:
    """Return the newest approvals, the newest first. `agent_id`: those among them that are of this agent."""
    asks = [RecentAsk(*row) for row in db.rows(_NEWEST_ASKS, most=NEWEST)]
    return [ask for ask in asks if agent_id in {"", ask.agent_id}]


def most_frequent(asks: Sequence[RecentAsk], most: int) -> list[AlikeAsks]:
    """Return the calls about which people were asked most often, at most `most`, the most frequent first."""
    groups: dict[str, list[RecentAsk]] = {}
    for ask in asks:
        if ask.likeness:
            groups.setdefault(ask.likeness, []).append(ask)
    by_number = sorted(groups.items(), key=lambda group: (-len(group[1]), group[0]))[:most]
    return [_alike(likeness, group) for likeness, group in by_number]


def _alike(likeness: str, group: Sequence[RecentAsk]) -> AlikeAsks:
    statuses = [ask.status for ask in group]
    return AlikeAsks(
        in_words(likeness, group[0].tool),
        group[0].tool,
        len(group),
        statuses.count("allowed"),
        statuses.count("denied"),
        next((ask.id for ask in group if ask.status == "pending"), None),
        Counter(ask.agent_id for ask in group).most_common(1)[0][0],
        pattern(likeness, group[0].tool),
    )


def allows_in_a_row(asks: Sequence[RecentAsk]) -> dict[str, int]:
    """Return how many calls each person has allowed since their last denial, by principal, as far as these approvals go back."""
    counts: dict[str, int] = {}
    over: set[str] = set()
    endings = [(ask.decided_at, ask.id, ask) for ask in asks if ask.decided_at]
    for _, _, ask in sorted(endings, key=lambda entry: entry[:2], reverse=True):
        who = ask.decided_by or ""
        if not who.startswith("user:"):
            continue
        if ask.status == "denied":
            over.add(who)
        elif ask.status == "allowed" and who not in over:
            counts[who] = counts.get(who, 0) + 1
    return counts


_NEWEST_ASKS = """
    SELECT id, tool, agent_id, likeness, status, decided_by, decided_at FROM approval
    WHERE workspace_id = current_setting('assent.workspace') ORDER BY created_at DESC LIMIT %(most)s
"""
