"""`assent limits`: the most that a workspace, an agent or a person may spend in a day, a week or a month."""

from decimal import Decimal

import click

from api.cli.client import Inbox, with_inbox
from api.cli.main import as_json
from api.cli.nouns import IdOf
from api.cli.states import names_of_agents
from api.cli.tables import Column, Row, id_column, show_row, show_table
from models.pure.pricing.prices import cents_in

PATH = "/v1/spend_limits"


@click.group()
def limits() -> None:
    """Create, list and delete spend limits. Needs a key with the scope admin."""


@limits.command("create")
@click.argument("dollars")
@click.option("--agent", "agent_id", type=IdOf("agent"), help="Limit this agent.")
@click.option("--person", "user_id", type=IdOf("person"), help="Limit this person (address or id).")
@click.option("--workspace", "workspace_id", help="Limit this whole workspace (wrkspc_...).")
@click.option("--period", type=click.Choice(["daily", "weekly", "monthly"]), default="monthly", show_default=True)
@as_json
@with_inbox
def limits_create(inbox: Inbox, dollars: str, period: str, as_json: bool, **subjects: str | None) -> None:
    """Limit an agent, a person or the workspace to DOLLARS, such as 250 or 12.50. Replaces the limit of the same period."""
    scopes = [{"type": name.removesuffix("_id"), name: value} for name, value in subjects.items() if value is not None]
    if len(scopes) != 1:
        raise click.UsageError("name one of --agent, --person and --workspace.")
    row = inbox.call("POST", PATH, json={"amount": _cents(dollars), "scope": scopes[0], "period": period})
    show_row(row, as_json, [] if as_json else _columns(inbox, [row]))


@limits.command("list")
@as_json
@with_inbox
def limits_list(inbox: Inbox, as_json: bool) -> None:
    """List the spend limits, newest first."""
    rows = inbox.listed(PATH)
    show_table(rows, as_json, [] if as_json else _columns(inbox, rows))


@limits.command("delete")
@click.argument("limit_id", type=IdOf("spend limit"))
@with_inbox
def limits_delete(inbox: Inbox, limit_id: str) -> None:
    """Delete a spend limit (spl_...). Sessions that wait at it go on within a minute."""
    inbox.call("DELETE", f"{PATH}/{limit_id}")
    click.echo(f"{limit_id} is deleted.")


def _cents(dollars: str) -> str:
    """Return an amount in whole cents. Raises UsageError."""
    try:
        return cents_in(dollars)
    except ValueError as error:
        raise click.UsageError(f"DOLLARS: {error}") from None


def _columns(inbox: Inbox, rows: list[Row]) -> list[Column]:
    agents = names_of_agents(inbox, (row["scope"].get("agent_id") for row in rows))

    def subject_of(row: Row) -> str:
        kind = row["scope"]["type"]
        row_id = row["scope"][f"{kind}_id"]
        return f"{kind} {agents.get(row_id, row_id)}"

    return [
        id_column(),
        Column("LIMITS", subject_of, gives_way=True),
        Column("PERIOD", lambda row: row["period"]),
        Column("AMOUNT", _amount, to_the_right=True),
    ]


def _amount(row: Row) -> str:
    return "no limit" if row["amount"] is None else f"${Decimal(row['amount']) / 100:.2f}"
