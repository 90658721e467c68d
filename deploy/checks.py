"""What a database must be before anything runs on it: reachable, new enough, and its running roles not too strong."""

import psycopg
from psycopg.conninfo import conninfo_to_dict

from deploy.folder import Refused
from models.database import roles
from models.database.roles import Facts, too_old, too_strong


def check_running_role(variable: str, url: str) -> None:
    """Raises Refused, in one line with the remedy, when a running role's database will not do. `variable` names the URL."""
    facts = look(variable, url)
    problem = too_old(facts) or too_strong(facts)
    if problem:
        raise Refused(f"{variable}: {problem}")


def check_owner(variable: str, url: str) -> None:
    """The same for the role that migrates, which may be strong."""
    problem = too_old(look(variable, url))
    if problem:
        raise Refused(f"{variable}: {problem}")


def look(variable: str, url: str) -> Facts:
    """Ask the database. Raises Refused when it does not answer within 3 s or does not let us in."""
    try:
        return roles.look(url)
    except psycopg.Error as error:
        said = " ".join(str(error).split())
        raise Refused(f"{variable}: the database does not answer at {_place(url)}: {said[:300]}") from None


def _place(url: str) -> str:
    """Host, port and database of a URL, without the password."""
    try:
        parts = conninfo_to_dict(url)
    except psycopg.Error:
        return "an address that cannot be read"
    return f"{parts.get('host', 'localhost')}:{parts.get('port', 5432)}/{parts.get('dbname', '')}"
