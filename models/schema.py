"""Every table, imported: foreign keys name tables, so whoever writes rows needs to know them all."""

from models.agent import Agent, AgentVersion
from models.api_key import ApiKey
from models.approval import Approval
from models.attempt import Attempt
from models.audit import Audit
from models.audit_text import AuditText
from models.environment import Environment
from models.event import Event
from models.grant import Grant
from models.idempotency import Answer
from models.seal import Seal, Sealed
from models.session import Session
from models.stored_result import StoredResult
from models.sweep_failure import SweepFailure
from models.tool_call import ToolCall
from models.toolset import Listing, Toolset
from models.turn import Turn
from models.work import Work
from models.workspace import Workspace

_OF_SESSIONS = (Session, Turn, ToolCall, StoredResult, Attempt, Approval, Event, Work, Grant)
_OF_THE_AUDIT = (Audit, AuditText, Seal, Sealed)
TABLES = (
    Workspace,
    ApiKey,
    Agent,
    AgentVersion,
    Environment,
    Toolset,
    Listing,
    *_OF_SESSIONS,
    *_OF_THE_AUDIT,
    Answer,
    SweepFailure,
)
