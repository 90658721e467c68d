"""Routes of a person's data: export it, and erase the person."""

from typing import Any, Literal

from flask import Blueprint, Response
from pydantic import Field

from api.door import auth, parsing
from api.door.examples import IDS
from api.door.requests import Erase, NoQuery
from api.door.responses import ResponseModel, Time, UserId
from api.door.routes import JSON, Door, opens, writes
from models.audit.principal import Principal
from models.database.rows import Db
from models.operate.personal_data import person
from models.operate.personal_data.export import export

personal_data = Blueprint("personal_data", __name__, url_prefix="/v1/organizations/users")

Row = dict[str, Any]


class UserErased(ResponseModel):
    """The person is erased. Decisions keep the id."""

    id: UserId
    type: Literal["user_erased"]
    erased_at: Time


class Profile(ResponseModel):
    """A person and their role in the workspace."""

    id: UserId
    email: str = Field(examples=["anna@example.com"])
    name: str = Field(examples=["Anna"])
    role: str | None = Field(examples=["approver"])
    source: str | None = Field(examples=["direct"])
    decides_by_keys: bool
    """The person's setting: whether keys decide on the pages."""
    saved_views: list[list[str]] | None = Field(examples=[[["Deploys", "tool=deploy"]]])
    """The person's own lists of the inbox: the name and the query of each."""
    folded_groups: list[str] | None = Field(examples=[["soon"]])
    """The groups of the inbox that the person keeps folded."""
    created_at: Time
    deactivated_at: Time | None
    erased_at: Time | None


class PersonalData(ResponseModel):
    """All that the workspace keeps about a person."""

    type: Literal["personal_data"]
    exported_at: Time
    profile: Profile
    sign_ins: list[Row] = Field(examples=[[]])
    passkeys: list[Row] = Field(examples=[[]])
    accounts: list[Row] = Field(examples=[[]])
    """Accounts at issuers of OpenID Connect."""
    slack_users: list[Row] = Field(examples=[[]])
    groups: list[Row] = Field(examples=[[]])
    invitations: list[Row] = Field(examples=[[]])
    delegations: list[Row] = Field(examples=[[]])
    """From the person and to the person."""
    channels: list[Row] = Field(examples=[[]])
    """The settings of the person's notifications."""
    api_keys: list[Row] = Field(examples=[[]])
    """The API keys that the person made."""
    spend_limits: list[Row] = Field(examples=[[]])
    usage: list[Row] = Field(examples=[[]])
    """What the person's runs consumed, by day, agent and model."""
    acts: list[Row] = Field(examples=[[{"action": "approval.decided", "subject_id": IDS["approval_id"], "decision": {}}]])
    """The person's acts in the audit, each with the `message`, `decision` or `vote` that it is about, if its session has it."""


@personal_data.get("/<user_id>/export")
@opens(Door(PersonalData, query=NoQuery, errors=(404,)))
def export_person(user_id: str) -> Response:
    """Export a person's data as one JSON object.

    For the person, or with the scope `admin`. The response is written while it is read, however much it is. The audit records it.
    """
    principal = auth.authenticate()
    if principal.kind != "user" or principal.id != user_id:
        auth.require(principal, "admin")
    parsing.query(NoQuery)
    parsing.check_ids({"user_id": user_id})
    pieces = export(principal.workspace_id, user_id, by=principal)
    headers = {"content-disposition": f'attachment; filename="assent-{user_id}.json"'}
    return Response(pieces, mimetype=JSON, headers=headers)


@personal_data.post("/<user_id>/erase")
@writes(Erase, "admin", once=True, response=UserErased)
def erase_person(db: Db, principal: Principal, body: Erase, user_id: str) -> UserErased:
    """Erase a person from the workspace.

    The name, the addresses and every way to sign in go, also of a deactivated person. Decisions keep the person's id, and show
    "a person who was erased". The last admin cannot be erased, and nobody erases themselves.
    """
    return UserErased(id=user_id, type="user_erased", erased_at=person.erase(db, user_id, body.reason, by=principal))
