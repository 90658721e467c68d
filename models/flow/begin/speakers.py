"""Speakers: the people who start a run or send a message to it. With four eyes they may not decide its calls.

Besides the people whom a request names, the makers count: who made the API key, or the link behind a person's sign-in.
"""

from collections.abc import Collection

from models.audit.principal import Principal
from models.database.rows import Db
from models.errors import Invalid
from models.people.member import Member
from models.people.principal import PersonPrincipal
from models.policy.approval_levels import may_need_four_eyes
from models.session.locked import Locked
from models.workspace import roster

_PREFIX = "user:"


def speaker_id(db: Db, principal: Principal, on_behalf_of: str | None) -> str | None:
    """Return the id of the speaker: the signed-in person, or the person whom an API key names as `user:ID`. Raises Invalid."""
    if isinstance(principal, PersonPrincipal):
        if on_behalf_of not in {None, _PREFIX + principal.person_id}:
            raise Invalid("on_behalf_of", "is for API keys; you speak for yourself: leave it out.")
        return principal.person_id
    if on_behalf_of is None:
        return None
    person_id = on_behalf_of.removeprefix(_PREFIX)
    member = db.get(Member, db.workspace_id, person_id)
    if member is None or member.deactivated_at is not None:
        raise Invalid("on_behalf_of", f"{on_behalf_of} is not an active member of this workspace.")
    return person_id


def check(locked: Locked, askers: Collection[str | None]) -> None:
    """Raise Invalid if calls of the session may need four eyes and nobody is known who asks for them.

    Also those of sub-agents that have not begun yet.
    """
    if any(askers):
        return
    bodies = [each.agent for each in locked.each] + roster.bodies(locked.db, locked.agent)
    if any(may_need_four_eyes(body, locked.policies) for body in bodies):
        raise Invalid(
            "on_behalf_of",
            "calls of this agent or its sub-agents need four eyes, so Assent must know who asks for them: name the person, such as "
            "user:user_...",
        )


def hear(locked: Locked, on_behalf_of: str | None) -> str | None:
    """Add the speaker of a message to the run's speakers. If the session is idle, a new run begins, with this speaker alone.

    The makers stay, as their messages do. Returns the speaker as the event names them, or None. Raises Invalid.
    """
    session = locked.session
    speaker = speaker_id(locked.db, locked.actor, on_behalf_of)
    makers = sorted({*(session.makers or ()), *locked.actor.makers}) or None
    check(locked, [speaker, session.on_behalf_of, *(makers or ())])
    before = [] if session.status == "idle" else session.speakers
    speakers = sorted({*before, *(person for person in (session.on_behalf_of, speaker) if person)})
    if (speakers, makers) != (session.speakers, session.makers):
        session.speakers, session.makers = speakers, makers
    return _PREFIX + speaker if speaker else None
