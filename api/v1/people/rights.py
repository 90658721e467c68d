"""The rights that a principal may give to others: only rights that the principal has."""

from api.door import auth
from models.audit.principal import Principal
from models.database.rows import Db
from models.people.roles import OWN, SCOPES_OF
from models.workspace.api_key import check_lasting


def check_invitation(db: Db, principal: Principal, role: str) -> None:
    """Raise Denied (403) unless the principal may let in a person with this role; Forbidden for a key that ends or has networks."""
    check_role(principal, role)
    check_lasting(db, principal)


def check_role(principal: Principal, role: str) -> None:
    """Raise Denied (403) unless the principal has each scope that the role gives. Only people have the scope `own`."""
    auth.require(principal, *sorted(SCOPES_OF[role] - {OWN} | ({"read"} if role == "approver" else set())))
