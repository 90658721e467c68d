"""The report of a verification as the page says it: in three verdicts, with names instead of ids, and times to the second."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal
from urllib.parse import urlencode

from api.desk.audit.sentences import Part
from api.desk.audit.things import principal_in_words, session_names
from models.audit.seals import LATE_SECONDS
from models.audit.verifying import AuditReport
from models.database.rows import Db
from models.people.names import Names

_NAMED = re.compile(
    r"(?P<chain>chain )?(?P<session>sesn_\w+)|(?P<workspace>(?:chain )?wrkspc_\w+)|(?P<principal>\b(?:user|api_key|person):\w+)"
    r"|(?P<time>\d{4}-\d\d-\d\dT[\d:.]+\+00:00)"
)
"""What a message of the verifier names by an id, and its times."""

_FIRST = f"The first seal follows within {LATE_SECONDS} seconds. Until then nobody could tell whether an act was changed."


@dataclass(frozen=True)
class Verdict:
    """A report in words."""

    tone: Literal["good", "warn", "bad"]
    title: str
    problems: list[list[Part]]
    notes: list[list[Part]]


def verdict(db: Db, report: AuditReport, now: datetime) -> Verdict:
    """Return the verdict on a workspace's audit.

    Before its first seal an audit is neither intact nor changed. If nothing is sealed although acts are older than a minute, the
    report's problem stands.
    """
    messages = [problem.message for problem in report.problems]
    is_open = not report.seals and all(problem.kind == "unsigned" for problem in report.problems)
    is_young = report.unsealed_since is None or report.unsealed_since > now - timedelta(seconds=LATE_SECONDS)
    notes = report.notes
    if is_open and is_young:
        messages, notes = [], [_FIRST]
    part_of = _names(db, " ".join([*messages, *notes]))
    problems = [_parts(f"{message.rstrip('.')}.", part_of) for message in messages]
    notes_in_words = [_parts(note, part_of) for note in notes]
    if is_open:
        return Verdict("bad" if problems else "warn", "Not sealed yet." if is_young else "Not sealed.", problems, notes_in_words)
    if report.intact:
        return Verdict("good", "Intact.", problems, notes_in_words)
    return Verdict("bad", "Not intact.", problems, notes_in_words)


def _parts(message: str, part_of: Callable[[re.Match[str]], Part]) -> list[Part]:
    parts, end = [], 0
    for match in _NAMED.finditer(message):
        parts += [Part(message[end : match.start()]), part_of(match)]
        end = match.end()
    first, *others = [part for part in (*parts, Part(message[end:])) if part.text]
    return [Part(first.text[:1].upper() + first.text[1:], first.path), *others]


def _names(db: Db, text: str) -> Callable[[re.Match[str]], Part]:
    """Return what names the ids in `text`. A session that is gone is the chain to which its link leads."""
    matches = list(_NAMED.finditer(text))
    sessions = session_names(db, {match["session"] for match in matches if match["session"]})
    people = Names.of(db, {match["principal"] for match in matches if match["principal"]})

    def part_of(match: re.Match[str]) -> Part:
        if id_ := match["session"]:
            path = f"/inbox/audit?{urlencode({'session': id_, 'about': 'all'})}"
            return Part(f"{'the chain of ' if match['chain'] else ''}{sessions[id_]}" if id_ in sessions else "this chain", path)
        if match["workspace"]:
            return Part("the workspace")
        if name := match["principal"]:
            return Part(principal_in_words(people, name))
        return Part(f"{datetime.fromisoformat(match['time']):%Y-%m-%d %H:%M:%S} UTC")

    return part_of
