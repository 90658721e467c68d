"""Who must approve: which people, how many of them, whether a person may approve what they asked for themselves, and by which
answers."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from models.pure.offer import EVERYTHING, LEVELS, PARENT, Offer

Settings = Mapping[str, Any]
"""The `approval` settings of one level: workspace, agent, toolset or tool."""


@dataclass(frozen=True)
class Quorum:
    """What a call needs before it may run, and the options that people have."""

    approvers: tuple[tuple[str, ...], ...] = ()
    """Sets of `user:ID` and `group:ID`. An approver is in every set. Without a set, everybody may decide whose role or key may."""
    required_people: int = 1
    """The number of people who must approve."""
    four_eyes: bool = False
    """True if whoever started the run, or sent a message to it, may not decide."""
    offer: Offer = EVERYTHING

    @property
    def needs_people(self) -> bool:
        """True if only people who signed in may decide: no API key, no chat word, no deadline."""
        return bool(self.approvers) or self.required_people > 1 or self.four_eyes

    @property
    def needs_sign_in(self) -> bool:
        """True if a person must sign in to vote: a click in a message is not enough."""
        return self.required_people > 1 or self.four_eyes

    def lacks_starter(self, started_by: Collection[str]) -> bool:
        """True if four eyes are needed and nobody is named as having asked for the call, so that nobody may allow it."""
        return self.four_eyes and not started_by

    def admits(self, names: frozenset[str]) -> bool:
        """True if a person with these names, their own and those of their groups, is in every set."""
        return all(not names.isdisjoint(one) for one in self.approvers)

    def and_also(self, other: "Quorum") -> "Quorum":
        """Return the quorum that satisfies both: the larger number, four eyes if either says so, the sets of both, and the
        answers that both offer."""
        sets = tuple(dict.fromkeys((*self.approvers, *other.approvers)))
        return Quorum(
            sets,
            max(self.required_people, other.required_people),
            self.four_eyes or other.four_eyes,
            self.offer.and_also(other.offer),
        )

    @property
    def as_json(self) -> dict[str, Any] | None:
        """The quorum as JSON; None if it demands nothing and offers every option."""
        offer = self.offer.as_json
        if not self.needs_people and offer is None:
            return None
        demands = {
            "approvers": [list(one) for one in self.approvers],
            "required": self.required_people,
            "four_eyes": self.four_eyes,
        }
        return demands if offer is None else demands | {"offer": offer}

    @classmethod
    def of(cls, fields: Mapping[str, Any] | None) -> "Quorum":
        """Return the quorum from its JSON."""
        if fields is None:
            return cls()
        return cls(
            tuple(tuple(one) for one in fields["approvers"]), fields["required"], fields["four_eyes"], Offer.of(fields.get("offer"))
        )


@dataclass(frozen=True)
class Escalation:
    """The levels that passed deadlines add one after another, and the effect of the last deadline."""

    quorums: tuple[Quorum, ...]
    """The quorum of each level."""
    seconds: tuple[float, ...]
    """The time of each level."""
    then: str
    """The effect when the last level's time has passed: `deny` or `end_run`."""

    @property
    def as_json(self) -> dict[str, Any]:
        """The escalation as JSON."""
        levels = [
            {"quorum": quorum.as_json, "seconds": seconds} for quorum, seconds in zip(self.quorums, self.seconds, strict=True)
        ]
        return {"levels": levels, "then": self.then}

    @classmethod
    def of(cls, fields: Mapping[str, Any]) -> "Escalation":
        """Return the escalation from its JSON."""
        levels = fields["levels"]
        quorums = tuple(Quorum.of(level["quorum"]) for level in levels)
        return cls(quorums, tuple(level["seconds"] for level in levels), fields["then"])


def combined(levels: Sequence[Settings], parents: int = 0) -> tuple[Quorum, Escalation | None]:
    """Return the quorum of `levels`, and the escalation of the nearest level with `on_timeout`, if it escalates.

    `levels` are in the order of `LEVELS`, the nearest last. `parents` is how many of them, behind the first, are of a parent.
    An escalation adds its approvers to those of its own level. The approvers of the other levels hold as before.
    """
    escalates = max((at for at, level in enumerate(levels) if level.get("on_timeout") is not None), default=None)
    quorum = _quorum(levels, parents)
    if escalates is None or levels[escalates]["on_timeout"] != "escalate":
        return quorum, None
    own = levels[escalates]
    steps = own["escalate_to"]
    quorums = []
    for count in range(1, len(steps) + 1):
        added = [name for step in steps[:count] for name in step["approvers"]]
        approvers = list(dict.fromkeys([*(own.get("approvers") or []), *added]))
        quorums.append(_quorum([*levels[:escalates], {**own, "approvers": approvers}, *levels[escalates + 1 :]], parents))
    return quorum, Escalation(tuple(quorums), tuple(step["timeout_seconds"] for step in steps), own.get("then") or "deny")


def _quorum(levels: Sequence[Settings], parents: int) -> Quorum:
    quorum = Quorum()
    for name, level in zip((LEVELS[0], *[PARENT] * parents, *LEVELS[1:]), levels, strict=False):
        approvers = level.get("approvers")
        sets = (tuple(approvers),) if approvers else ()
        required_people = level.get("required_approvals") or 1
        quorum = quorum.and_also(Quorum(sets, required_people, bool(level.get("four_eyes")), Offer.at(name, level)))
    return quorum
