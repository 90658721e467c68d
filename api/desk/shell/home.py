"""The page with which a person begins, by role."""

from api.desk import waiting_list
from api.desk.shell import places
from api.desk.shell.blueprint import page
from models.database.rows import Db
from models.people.principal import PersonPrincipal


@page("/inbox/home", "inbox", "own or read")
def home(db: Db, person: PersonPrincipal) -> str:
    """Go to the person's first page."""
    return places.home_of(person, waiting_list.following(db, person, None) is not None)
