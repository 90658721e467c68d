"""The page that lists the settings."""

from api.desk.shell.blueprint import page
from api.door.framed import FramedPage
from models.database.rows import Db
from models.people.principal import PersonPrincipal


@page("/inbox/settings", "settings", "own or read")
def index(_db: Db, _person: PersonPrincipal) -> FramedPage:
    """Show the settings that the person may open."""
    return FramedPage("settings/index.html")
