"""Imports every table: a foreign key names its table, and SQLAlchemy must know that table before rows are written."""

from models.audit.acts import Audit
from models.audit.seals import Seal
from models.audit.text import AuditText
from models.outbox.approval_change import ApprovalChange
from models.outbox.channel import Channel
from models.outbox.delivery import Delivery
from models.outbox.endpoint import Endpoint
from models.outbox.link import Link
from models.outbox.notification import Notification
from models.outbox.removal import Removal
from models.outbox.slack_reply import SlackReply
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
from models.session.approval import Approval
from models.session.approver_set import ApproverSet
from models.session.attempt import Attempt
from models.session.call_input import CallInput
from models.session.call_result import CallResult
from models.session.event import Event
from models.session.evidence import Evidence
from models.session.failure import Failure
from models.session.fold import Fold
from models.session.grant import Grant
from models.session.reply import Reply
from models.session.session import Session
from models.session.stored_result import StoredResult
from models.session.tool_call import ToolCall
from models.session.turn import Turn
from models.session.turn_usage import DailyUsage, TurnUsage
from models.session.vote import Vote
from models.session.work import Work
from models.workspace.agent import Agent, AgentVersion
from models.workspace.api_key import ApiKey
from models.workspace.environment import Environment
from models.workspace.halt import Halt
from models.workspace.idempotency import Answer
from models.workspace.provider_key import ProviderKey
from models.workspace.spend_limit import SpendLimit
from models.workspace.toolset import Listing, Toolset
from models.workspace.workspace import Workspace

_OF_SESSIONS = (
    *(Session, Turn, Reply, ToolCall, CallInput, CallResult, StoredResult, Attempt),
    *(Approval, ApproverSet, Vote, Evidence, Event, Work, Grant, Fold, TurnUsage, DailyUsage),
)
_OF_PEOPLE = (
    *(Organization, Person, Identity, Member, Group, Membership, Delegation),
    *(Invitation, SignIn, Passkey, Ceremony, SlackUser),
)
_OF_THE_OUTBOX = (Endpoint, Delivery, Link, Channel, ApprovalChange, Notification, SlackReply)
_OF_THE_AUDIT = (Audit, AuditText, Seal)
TABLES = (
    Workspace,
    ApiKey,
    Agent,
    AgentVersion,
    Environment,
    Halt,
    ProviderKey,
    SpendLimit,
    Toolset,
    Listing,
    *_OF_PEOPLE,
    *_OF_SESSIONS,
    *_OF_THE_OUTBOX,
    *_OF_THE_AUDIT,
    Answer,
    Failure,
    Removal,
)
