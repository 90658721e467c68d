"""Responses of the insights."""

from collections.abc import Mapping
from typing import Literal, Self

from pydantic import Field

from api.door.responses import ResponseModel
from models.operate.insights.report import OUTCOMES, AskLine


class Insight(ResponseModel):
    """The approvals of one day, hour, tool, agent, channel or person, by what became of them."""

    type: Literal["insight"]
    name: str = Field(examples=["bash"])
    """A day such as `2026-11-26` (UTC), an hour such as `14`, a tool, a channel, or the id of an agent or person."""
    title: str = Field(examples=["bash"])
    """The name for people: of an agent or person it is theirs."""
    asks: int
    """All approvals: the sum of the next six."""
    waiting: int
    allows: int
    denials: int
    answers: int
    expiries: int
    """Approvals that their deadline ended, also if it denied the call."""
    cancellations: int
    decisions: int
    """Those that a person or an API key decided, and not a grant, a deadline or an interrupt. The rest is about these."""
    allow_rate: float | None
    """The share of allows among allows and denials."""
    quick_allows: int
    """Allows within 3 seconds."""
    median_seconds: float | None
    """Half of the decisions took at most so long. From sums of 41 classes of times, so right to within a class."""
    p90_seconds: float | None

    @classmethod
    def of(cls, line: AskLine, title_of: Mapping[str, str]) -> Self:
        """Return a line of a report."""
        times = {f"{name}_seconds": _rounded(line.seconds(share)) for name, share in (("median", 0.5), ("p90", 0.9))}
        outcomes = {name: line.outcomes[outcome] for outcome, name in OUTCOMES.items()}
        return cls.model_validate(
            {
                "type": "insight",
                "name": line.name,
                "title": title_of.get(line.name, line.name),
                "asks": line.asks,
                "waiting": line.waiting,
                **outcomes,
                "decisions": line.decisions.total(),
                "allow_rate": _rounded(line.allow_rate, 4),
                "quick_allows": line.quick_allows,
                **times,
            }
        )


def _rounded(value: float | None, digits: int = 1) -> float | None:
    return None if value is None else round(value, digits)


class Insights(ResponseModel):
    """All lines of a report. Of more than 500 names, those with the most approvals."""

    data: list[Insight]
    first_day: str = Field(examples=["2026-10-28"])
    """The first day (UTC) on which people were asked."""
    last_day: str = Field(examples=["2026-11-26"])
