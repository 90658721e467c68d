"""`assent open`: the page of an approval, a session or a list in the browser."""

import sys
from contextlib import suppress

import click

from api.cli.client import Inbox, NotNamed, with_inbox
from api.cli.nouns import NOUNS

PAGES = {"inbox": "", "sessions": "/sessions", "grants": "/grants", "usage": "/usage", "audit": "/audit", "people": "/people"}
"""The pages that have a name."""
FOLDERS = {"approval": "approvals", "session": "sessions"}
"""The nouns whose rows have a page each, with the folder of these pages."""


@click.command("open")
@click.argument("page", default="inbox")
@click.option("--print", "only_print", is_flag=True, help="Print the address, and open no browser.")
@with_inbox
def open_page(inbox: Inbox, page: str, only_print: bool) -> None:
    """Open the page of an approval or a session in the browser, by its id or the last characters of its id.

    PAGE may also be inbox, sessions, grants, usage, audit or people. Without a terminal, the address is printed.
    """
    address = f"{str(inbox.http.base_url).rstrip('/')}/inbox{PAGES[page] if page in PAGES else _path(inbox, page)}"
    click.echo(address)
    if not only_print and sys.stdout.isatty():
        click.launch(address)


def _path(inbox: Inbox, page: str) -> str:
    """Return the path of a row's page. Raises click.ClickException if there is no such row."""
    for noun, folder in FOLDERS.items():
        if page.startswith(NOUNS[noun].prefix):
            row = inbox.call("GET", f"{NOUNS[noun].path}/{inbox.find(noun, page)}")
            return f"/{folder}/{row['id']}"
    for noun, folder in FOLDERS.items():
        with suppress(NotNamed):
            return f"/{folder}/{inbox.find(noun, page)}"
    raise click.ClickException(f"{page}: neither a page ({', '.join(PAGES)}) nor the id of an approval or a session")
