"""The acts of the audit in sentences: who did what, to what."""

from collections.abc import Iterable, Sequence
from typing import Any

from models.audit.acts import Audit
from models.database.rows import Db
from models.pure.text.visible import visible
from models.session.approval import sentences
from models.session.approval.row import Approval

DECISIONS, ACCESS, SETTINGS, WORK, SEALS = "Decisions", "People and access", "Settings", "Work of agents", "Seals"

ACTS: dict[str, tuple[str, str]] = {
    "agent.archived": (SETTINGS, "archived the agent"),
    "agent.created": (SETTINGS, "created the agent"),
    "agent.updated": (SETTINGS, "changed the agent"),
    "api_key.created": (ACCESS, "created the key"),
    "api_key.disabled": (ACCESS, "switched off the key"),
    "api_key.enabled": (ACCESS, "switched on the key"),
    "api_key.renamed": (ACCESS, "renamed the key"),
    "api_key.revoked": (ACCESS, "archived the key"),
    "api_key.rotated": (ACCESS, "replaced the secret of the key"),
    "approval.cancelled": (DECISIONS, "withdrew the question"),
    "approval.decided": (DECISIONS, "decided"),
    "approval.escalated": (DECISIONS, "asked others, because nobody had decided"),
    "approval.expired": (DECISIONS, "let the question expire, because nobody had decided"),
    "approval.extended": (DECISIONS, "extended the deadline of"),
    "approval.reminded": (DECISIONS, "reminded those who decide"),
    "approval.requested": (DECISIONS, "asked people"),
    "approval.revealed": (DECISIONS, "looked at the secrets of"),
    "approval.voted": (DECISIONS, "voted on"),
    "audit.adopted": (SEALS, "adopted another head of the audit"),
    "audit.anchored": (SEALS, "cut old acts off the audit"),
    "audit.erased": (SEALS, "erased texts of the audit"),
    "audit.sealed": (SEALS, "sealed the audit"),
    "budget.asked": (DECISIONS, "asked whether to raise the budget of"),
    "budget.raised": (DECISIONS, "raised the budget of"),
    "budget.reached": (WORK, "stopped at the budget of"),
    "channel.created": (SETTINGS, "added a channel"),
    "channel.deleted": (SETTINGS, "removed a channel"),
    "channel.disabled": (SETTINGS, "turned off a channel"),
    "channel.updated": (SETTINGS, "changed a channel"),
    "delegation.accepted": (ACCESS, "accepted a delegation"),
    "delegation.ended": (ACCESS, "ended a delegation"),
    "delegation.given": (ACCESS, "gave a delegation"),
    "environment.archived": (SETTINGS, "archived an environment"),
    "environment.created": (SETTINGS, "created an environment"),
    "environment.deleted": (SETTINGS, "deleted an environment"),
    "environment.updated": (SETTINGS, "changed an environment"),
    "events.revealed": (DECISIONS, "looked at the secrets in events"),
    "grant.given": (DECISIONS, "gave a grant"),
    "grant.revoked": (DECISIONS, "revoked a grant"),
    "grant.used": (DECISIONS, "ran by a grant"),
    "group.created": (ACCESS, "created the group"),
    "group.deleted": (ACCESS, "deleted a group"),
    "group.member_added": (ACCESS, "added a member to the group"),
    "group.member_removed": (ACCESS, "took a member out of the group"),
    "group.renamed": (ACCESS, "renamed the group"),
    "legal_hold.released": (SETTINGS, "released a legal hold"),
    "legal_hold.set": (SETTINGS, "set a legal hold"),
    "link.used_up": (DECISIONS, "used up a link, by wrong codes"),
    "message.received": (WORK, "sent a message"),
    "message.sent_to_thread": (WORK, "sent a message to a sub-agent"),
    "person.account_connected": (ACCESS, "connected an account of the organization"),
    "person.added": (ACCESS, "added"),
    "person.confirmed": (ACCESS, "confirmed"),
    "person.deactivated": (ACCESS, "deactivated"),
    "person.erased": (ACCESS, "erased a person"),
    "person.exported": (ACCESS, "exported all that is kept about"),
    "person.invitation_withdrawn": (ACCESS, "withdrew an invitation"),
    "person.invited": (ACCESS, "invited somebody"),
    "person.link_renewed": (ACCESS, "made a new sign-in link for"),
    "person.link_used": (ACCESS, "used a sign-in link"),
    "person.passkey_added": (ACCESS, "added a passkey"),
    "person.passkey_removed": (ACCESS, "removed a passkey"),
    "person.password_removed": (ACCESS, "removed a password"),
    "person.password_set": (ACCESS, "set a password"),
    "person.role_changed": (ACCESS, "changed the role of"),
    "person.signed_in": (ACCESS, "signed in"),
    "person.signed_out": (ACCESS, "signed out"),
    "person.slack_linked": (ACCESS, "linked a Slack user"),
    "person.slack_unlinked": (ACCESS, "unlinked a Slack user"),
    "policy.changed": (SETTINGS, "changed the policy of the workspace"),
    "policy.simulated": (SETTINGS, "tried a policy on past calls"),
    "provider_key.deleted": (SETTINGS, "deleted a provider's key"),
    "provider_key.stored": (SETTINGS, "stored a provider's key"),
    "session.archived": (WORK, "archived"),
    "session.created": (WORK, "started"),
    "session.deleted": (WORK, "deleted a session"),
    "session.erased": (WORK, "erased a session"),
    "session.interrupted": (WORK, "stopped"),
    "session.updated": (WORK, "changed"),
    "spend_limit.deleted": (SETTINGS, "deleted a spend limit"),
    "spend_limit.passed": (DECISIONS, "let a session spend beyond the limit:"),
    "spend_limit.set": (SETTINGS, "set a spend limit"),
    "thread.archived": (WORK, "archived a sub-agent"),
    "thread.created": (WORK, "began a sub-agent"),
    "tool_call.allowed": (WORK, "was allowed a call by a rule"),
    "tool_call.answered": (WORK, "got an answer in the place of a call"),
    "tool_call.asked_back": (WORK, "asked something before a call goes on"),
    "tool_call.cached": (WORK, "took the result of an equal call"),
    "tool_call.denied": (WORK, "was denied a call by a rule"),
    "tool_call.doubted": (WORK, "does not know whether a call took effect"),
    "tool_call.expired": (WORK, "waited in vain for a call's result"),
    "tool_call.finished": (WORK, "finished a call"),
    "tool_call.given_up": (WORK, "gave up a call"),
    "tool_call.input_changed": (WORK, "refused a call whose input had changed"),
    "tool_call.lost": (WORK, "lost the worker of a call"),
    "tool_call.not_begun": (WORK, "could not begin a call"),
    "tool_call.refused": (WORK, "was refused a call that cannot run"),
    "tool_call.reported_late": (WORK, "reported a call's result too late"),
    "tool_call.started": (WORK, "began a call"),
    "tool_call.tool_changed": (WORK, "asks again, because the tool has changed"),
    "turn.failed": (WORK, "failed to ask the model"),
    "turn.fell_back": (WORK, "asked another model"),
    "turn.folded": (WORK, "summarized the conversation"),
    "turn.given_up": (WORK, "gave up a turn"),
    "turn.lost": (WORK, "lost the worker of a turn"),
    "turn.started": (WORK, "asked the model"),
    "vote.voided": (DECISIONS, "voided a vote"),
    "webhook.created": (SETTINGS, "added the webhook"),
    "webhook.deleted": (SETTINGS, "deleted a webhook"),
    "webhook.disabled": (SETTINGS, "disabled the webhook"),
    "webhook.secret_regenerated": (SETTINGS, "replaced the secret of the webhook"),
    "webhook.updated": (SETTINGS, "changed the webhook"),
    "work.offered": (WORK, "offered work to an environment's worker"),
    "work.stopped": (WORK, "stopped the work of an environment's worker"),
    "workspace.created": (SETTINGS, "created the workspace"),
    "workspace.halted": (SETTINGS, "halted the workspace"),
    "workspace.restored": (SETTINGS, "restored the workspace from a backup"),
    "workspace.resumed": (SETTINGS, "lifted the halt"),
}
"""By action: what it is about, and what the principal did, before the subject's name if it has one."""
GROUPS = {"decisions": DECISIONS, "access": ACCESS, "settings": SETTINGS, "work": WORK, "seals": SEALS}
"""By the value of the field `about`."""
_DECIDED = {"allowed": "allowed", "denied": "denied", "answered": "answered"}
_NAMES = {
    "session": "SELECT id, coalesce(title, 'a session without a title') FROM session WHERE id = ANY(%(ids)s)",
    "agent": "SELECT a.id, v.body->>'name' FROM agent a JOIN agent_version v ON v.agent_id = a.id AND v.version = a.version "
    "WHERE a.id = ANY(%(ids)s)",
    "person": "SELECT id, name FROM person WHERE id = ANY(%(ids)s)",
    "group": "SELECT id, name FROM person_group WHERE id = ANY(%(ids)s)",
    "api_key": "SELECT id, name FROM api_key WHERE id = ANY(%(ids)s)",
    "webhook": "SELECT id, coalesce(nullif(name, ''), url) FROM endpoint WHERE id = ANY(%(ids)s)",
}
"""Names of subjects, by the noun of the action."""
_PATHS = {"session": "/inbox/sessions/", "webhook": "/inbox/webhooks/", "approval": "/inbox/approvals/"}


def actions_about(about: str) -> list[str]:
    """Return the actions of a group."""
    return [action for action, (group, _words) in ACTS.items() if group == GROUPS.get(about)]


def words_of(action: str) -> str:
    """Return what the action says, for a list of actions: `decided`, `created the key`."""
    return ACTS[action][1].removesuffix(":") if action in ACTS else action.replace(".", " ").replace("_", " ")


def did(row: Audit) -> str:
    """Return what the principal did. A decision says which."""
    if row.action == "approval.decided":
        return _DECIDED.get(str(row.details.get("status")), "decided")
    return ACTS[row.action][1] if row.action in ACTS else words_of(row.action)


def subjects(db: Db, rows: Sequence[Audit]) -> dict[str, tuple[str, str]]:
    """Return the name and the address of each subject that has a name, by its id. Reads once for each kind of subject."""
    result: dict[str, tuple[str, str]] = {}
    for noun, sql in _NAMES.items():
        if ids := _ids(rows, noun):
            result |= {
                id_: (visible(str(name)), _PATHS.get(noun, "") and _PATHS[noun] + id_) for id_, name in db.rows(sql, ids=ids)
            }
    if ids := _ids(rows, "approval"):
        for row in db.find(Approval, "WHERE id = ANY(%(ids)s)", ids=ids):
            title = ": ".join(part for part in sentences.title(row) if part)
            result[row.id] = (sentences.shortened(" ".join(title.split()), 100), _PATHS["approval"] + row.id)
    return result


def _ids(rows: Iterable[Audit], noun: str) -> list[Any]:
    return list({row.subject_id for row in rows if row.action.partition(".")[0] == noun})
