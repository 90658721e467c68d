"""Imports every table: a foreign key names its table, and SQLAlchemy must know that table before rows are written."""

from models.audit.acts import Audit
from models.audit.anchors import AuditAnchor
from models.audit.legal_hold import LegalHold
from models.audit.seals import Seal
from models.audit.text import AuditText
from models.database.daily_asks import DailyAsks
from models.database.daily_usage import DailyUsage
from models.database.failure import Failure
from models.database.metric import Metric
from models.notices.channel import Channel
from models.notices.flood import Flood
from models.notices.link import Link
from models.notices.notification import Notification
from models.notices.slack_reply import SlackReply
from models.outbox.approval_change import ApprovalChange
from models.outbox.delivery import Delivery
from models.outbox.endpoint import Endpoint
from models.outbox.removal import Removal
from models.people.ceremony import Ceremony
from models.people.delegation import Delegation
from models.people.group import Group, Membership
from models.people.invitation import Invitation
from models.people.member import Member
from models.people.organization import Organization
from models.people.passkey import Passkey
from models.people.person import Identity, Person
from models.people.sign_in import SignIn
from models.people.slack_user import SlackUser
from models.session.approval.approver_set import ApproverSet
from models.session.approval.evidence import Evidence
from models.session.approval.grant import Grant
from models.session.approval.grant_use import GrantUse
from models.session.approval.row import Approval
from models.session.approval.vote import Vote
from models.session.archive.part import ArchiveContent, ArchivePart
from models.session.event.row import Event
from models.session.row import Session
from models.session.thread.inline_agent import InlineAgent
from models.session.thread.row import Thread
from models.session.tool_call.attempt import Attempt
from models.session.tool_call.input import CallInput
from models.session.tool_call.result import CallResult
from models.session.tool_call.row import ToolCall
from models.session.tool_call.stored_result import StoredResult
from models.session.turn.fold import Fold
from models.session.turn.reply import Reply
from models.session.turn.row import Turn
from models.session.turn.usage import TurnUsage
from models.session.work import Work
from models.workspace.agent import Agent, AgentVersion
from models.workspace.api_key import ApiKey
from models.workspace.environment import Environment
from models.workspace.halt import Halt
from models.workspace.idempotency import StoredResponse
from models.workspace.provider_key import ProviderKey
from models.workspace.row import Workspace
from models.workspace.spend_limit import SpendLimit
from models.workspace.spend_sum import SpendSum
from models.workspace.toolset import Listing, Toolset

_OF_SESSIONS = (
    *(Session, Thread, InlineAgent, Turn, Reply, ToolCall, CallInput, CallResult, StoredResult, Attempt),
    *(Approval, ApproverSet, Vote, Evidence, Event, Work, Grant, GrantUse, Fold, TurnUsage, DailyUsage),
    *(ArchivePart, ArchiveContent),
)
_OF_PEOPLE = (
    *(Organization, Person, Identity, Member, Group, Membership, Delegation),
    *(Invitation, SignIn, Passkey, Ceremony, SlackUser),
)
_OF_THE_OUTBOX = (Endpoint, Delivery, Link, Channel, Flood, ApprovalChange, Notification, SlackReply)
_OF_THE_AUDIT = (Audit, AuditText, Seal, AuditAnchor, LegalHold)
TABLES = (
    Workspace,
    ApiKey,
    Agent,
    AgentVersion,
    Environment,
    Halt,
    ProviderKey,
    SpendLimit,
    SpendSum,
    Toolset,
    Listing,
    *_OF_PEOPLE,
    *_OF_SESSIONS,
    *_OF_THE_OUTBOX,
    *_OF_THE_AUDIT,
    StoredResponse,
    DailyAsks,
    Failure,
    Metric,
    Removal,
)
