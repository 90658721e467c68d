"""The actions of the audit: what each is about, and its words."""

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
    "approval.cancelled": (DECISIONS, "withdrew the question about"),
    "approval.decided": (DECISIONS, "decided"),
    "approval.escalated": (DECISIONS, "asked others, because nobody had decided, about"),
    "approval.expired": (DECISIONS, "let expire, because nobody had decided,"),
    "approval.extended": (DECISIONS, "extended the deadline of"),
    "approval.reminded": (DECISIONS, "reminded those who decide about"),
    "approval.requested": (DECISIONS, "asked about"),
    "approval.revealed": (DECISIONS, "looked at the secrets of"),
    "approval.voted": (DECISIONS, "voted on"),
    "audit.adopted": (SEALS, "adopted another head of the audit"),
    "audit.anchored": (SEALS, "cut old acts off the audit"),
    "audit.erased": (SEALS, "erased texts of the audit"),
    "audit.sealed": (SEALS, "sealed the audit"),
    "budget.asked": (DECISIONS, "asked whether to raise the budget of"),
    "budget.raised": (DECISIONS, "raised the budget of"),
    "budget.reached": (WORK, "stopped at the budget of"),
    "channel.created": (SETTINGS, "added the channel"),
    "channel.deleted": (SETTINGS, "removed the channel"),
    "channel.disabled": (SETTINGS, "turned off the channel"),
    "channel.updated": (SETTINGS, "changed the channel"),
    "delegation.accepted": (ACCESS, "accepted a delegation"),
    "delegation.ended": (ACCESS, "ended a delegation"),
    "delegation.given": (ACCESS, "gave a delegation"),
    "environment.archived": (SETTINGS, "archived the environment"),
    "environment.created": (SETTINGS, "created the environment"),
    "environment.deleted": (SETTINGS, "deleted the environment"),
    "environment.updated": (SETTINGS, "changed the environment"),
    "events.revealed": (DECISIONS, "looked at the secrets in events"),
    "grant.given": (DECISIONS, "gave a grant:"),
    "grant.revoked": (DECISIONS, "revoked a grant:"),
    "grant.used": (WORK, "was allowed by a grant"),
    "group.created": (ACCESS, "created the group"),
    "group.deleted": (ACCESS, "deleted the group"),
    "group.member_added": (ACCESS, "added a member to the group"),
    "group.member_removed": (ACCESS, "took a member out of the group"),
    "group.renamed": (ACCESS, "renamed the group"),
    "legal_hold.released": (SETTINGS, "released a legal hold"),
    "legal_hold.set": (SETTINGS, "set a legal hold"),
    "link.used_up": (DECISIONS, "used up a link, by wrong codes"),
    "message.received": (WORK, "sent a message in"),
    "message.sent_to_thread": (WORK, "sent a message to a sub-agent in"),
    "person.account_connected": (ACCESS, "connected an account of the organization"),
    "person.added": (ACCESS, "added the person"),
    "person.admin_kept": (ACCESS, "stayed the last admin, against the groups of the issuer"),
    "person.confirmed": (ACCESS, "confirmed the sign-in of"),
    "person.deactivated": (ACCESS, "deactivated"),
    "person.erased": (ACCESS, "erased a person"),
    "person.exported": (ACCESS, "exported all that is kept about"),
    "person.invitation_withdrawn": (ACCESS, "withdrew the invitation of"),
    "person.invited": (ACCESS, "invited"),
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
    "provider_key.deleted": (SETTINGS, "deleted the key of the provider"),
    "provider_key.stored": (SETTINGS, "stored a key of the provider"),
    "session.archived": (WORK, "archived the session"),
    "session.created": (WORK, "started the session"),
    "session.deleted": (WORK, "deleted the session"),
    "session.erased": (WORK, "erased the session"),
    "session.interrupted": (WORK, "stopped the session"),
    "session.updated": (WORK, "changed the session"),
    "spend_limit.deleted": (SETTINGS, "deleted a spend limit"),
    "spend_limit.passed": (DECISIONS, "let a session spend beyond the limit:"),
    "spend_limit.set": (SETTINGS, "set a spend limit"),
    "thread.archived": (WORK, "archived a sub-agent in"),
    "thread.created": (WORK, "began a sub-agent in"),
    "tool_call.allowed": (WORK, "was allowed by a rule"),
    "tool_call.answered": (WORK, "got its result from the client"),
    "tool_call.asked_back": (WORK, "asked a question before it goes on"),
    "tool_call.cached": (WORK, "took the result of an equal call"),
    "tool_call.denied": (WORK, "was denied by a rule"),
    "tool_call.doubted": (WORK, "ended without proof of its effect"),
    "tool_call.expired": (WORK, "waited in vain for the client's result"),
    "tool_call.finished": (WORK, "finished"),
    "tool_call.given_up": (WORK, "was given up"),
    "tool_call.input_changed": (WORK, "did not run, because its input had changed"),
    "tool_call.lost": (WORK, "lost its worker"),
    "tool_call.not_begun": (WORK, "could not begin"),
    "tool_call.refused": (WORK, "cannot run"),
    "tool_call.reported_late": (WORK, "reported its result too late"),
    "tool_call.started": (WORK, "began"),
    "tool_call.tool_changed": (WORK, "asks again, because the tool has changed"),
    "turn.failed": (WORK, "failed to ask the model in"),
    "turn.fell_back": (WORK, "asked another model in"),
    "turn.folded": (WORK, "summarized the conversation of"),
    "turn.given_up": (WORK, "gave up a turn of"),
    "turn.lost": (WORK, "lost the worker of a turn in"),
    "turn.started": (WORK, "asked the model in"),
    "vote.voided": (DECISIONS, "voided a vote"),
    "webhook.created": (SETTINGS, "added the webhook"),
    "webhook.deleted": (SETTINGS, "deleted the webhook"),
    "webhook.disabled": (SETTINGS, "disabled the webhook"),
    "webhook.secret_regenerated": (SETTINGS, "replaced the secret of the webhook"),
    "webhook.updated": (SETTINGS, "changed the webhook"),
    "work.offered": (WORK, "offered work to an environment's worker in"),
    "work.stopped": (WORK, "stopped the work of an environment's worker in"),
    "workspace.created": (SETTINGS, "created the workspace"),
    "workspace.halted": (SETTINGS, "halted the workspace"),
    "workspace.restored": (SETTINGS, "restored the workspace from a backup"),
    "workspace.resumed": (SETTINGS, "lifted the halt"),
}
"""By action: what it is about, and what the principal did, before the subject's name if it has one."""
GROUPS = {"decisions": DECISIONS, "access": ACCESS, "settings": SETTINGS, "work": WORK, "seals": SEALS}
"""By the value of the field `about`."""


def actions_about(about: str) -> tuple[str, ...]:
    """Return the actions of a group; none for another value."""
    return tuple(action for action, (group, _words) in ACTS.items() if group == GROUPS.get(about))


def phrase(action: str) -> str:
    """Return what the principal did, before the name of what it was done to."""
    return ACTS[action][1] if action in ACTS else action.replace(".", " ").replace("_", " ")


def choices() -> list[tuple[str, list[tuple[str, str]]]]:
    """Return the actions to choose from, by group, each with its words."""
    return [
        (group, sorted(((action, title(action)) for action in actions_about(about)), key=lambda choice: choice[1]))
        for about, group in GROUPS.items()
    ]


def title(action: str) -> str:
    """Return the action as a choice: `Approval: decided`."""
    noun, _, _ = action.partition(".")
    return f"{noun.replace('_', ' ').capitalize()}: {phrase(action).rstrip(':,')}"
