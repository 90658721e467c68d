"""Checks a database before anything starts: it is reachable and new enough, and its running roles have no unneeded rights."""

import psycopg
from psycopg.conninfo import conninfo_to_dict

from deploy.folder import CannotStart
from models.database import roles
from models.database.roles import Facts, too_old, too_patient, too_strong


def check_running_role(variable: str, url: str) -> None:
    """Raise CannotStart if the server is too old or a running role has too many rights. `variable` is the variable with the URL."""
    facts = look(variable, url)
    problem = too_old(facts) or too_strong(facts) or too_patient(facts)
    if problem:
        raise CannotStart(f"{variable}: {problem}")


def check_owner(variable: str, url: str) -> None:
    """Raise CannotStart if the server of the owner's role is too old. The owner may have any rights."""
    problem = too_old(look(variable, url))
    if problem:
        raise CannotStart(f"{variable}: {problem}")


def look(variable: str, url: str) -> Facts:
    """Return facts about the server and the role. Raises CannotStart if the server does not respond within 3 s, or refuses the
    role."""
    try:
        return roles.read_facts(url)
    except psycopg.Error as error:
        message = " ".join(str(error).split())
        raise CannotStart(f"{variable}: the database does not respond at {place(url)}: {message[:300]}") from None


def place(url: str) -> str:
    """Return host, port and database of a URL, without the password."""
    try:
        parts = conninfo_to_dict(url)
    except psycopg.Error:
        return "an address that cannot be read"
    return f"{parts.get('host', 'localhost')}:{parts.get('port', 5432)}/{parts.get('dbname', '')}"
