"""Orders and refunds of a shop, in Postgres: an example of a toolset.

export ORDERS_DATABASE_URL=postgresql://localhost/shop
python -m examples.orders create                  # tables in a schema `shop`, and a few orders
export ASSENT_TOOLSETS=examples.orders:orders     # for the tools worker
"""

import os
import sys
from typing import Annotated, Any, Literal

import psycopg
from psycopg.rows import dict_row
from pydantic import Field

from assent import Cache, Context, ToolError, Toolset

orders = Toolset("orders", description="Orders of the shop: find them, refund them, write to who ordered.")

Db = psycopg.Connection[dict[str, Any]]
Row = dict[str, Any]
LOST = (psycopg.OperationalError,)

REFUNDS = {
    "type": "rules",
    "default": "ask",
    "rules": [
        {"effect": "allow", "match": {"tool": "refund", "input": [{"path": "/amount_cents", "lte": 10_00}]}},
        {
            "effect": "deny",
            "match": {"tool": "refund", "input": [{"path": "/amount_cents", "gt": 500_00}]},
            "reason": "the bank's limit is 500.00; larger refunds are made at the till",
        },
    ],
}


@orders.tool(effect="read", cache=Cache(60), retry_on=LOST, policy="always_allow")
def find_orders(
    customer: str | None = None,
    status: Literal["paid", "shipped"] | None = None,
    limit: Annotated[int, Field(ge=1, le=100)] = 20,
) -> list[Row]:
    """Find orders, the newest first.

    Args:
        customer: Part of the customer's name or e-mail address.
        status: Only orders in this status.
    """
    with connect() as db:
        return db.execute(
            """SELECT * FROM shop.orders WHERE (%(customer)s::text IS NULL OR customer ILIKE '%%' || %(customer)s || '%%')
               AND (%(status)s::text IS NULL OR status = %(status)s) ORDER BY ordered_at DESC LIMIT %(limit)s""",
            {"customer": customer, "status": status, "limit": limit},
        ).fetchall()


@orders.tool(effect="read", retry_on=LOST, policy="always_allow")
def get_order(order_id: str) -> Row:
    """One order, with its refunds."""
    with connect() as db:
        return {**the_order(db, order_id), "refunds": refunds_of(db, order_id)}


@orders.tool(
    effect="write",
    idempotent=True,
    retry_on=LOST,
    prompt="Refund {amount_cents} cents of order {order_id}: {reason}",
    masked=("iban",),
    policy=REFUNDS,
    options=("once", "session", "edit", "answer"),
)
def refund(order_id: str, amount_cents: Annotated[int, Field(gt=0)], reason: str, context: Context, iban: str | None = None) -> Row:
    """Pay back all or a part of an order.

    Args:
        amount_cents: At most what was paid and is not refunded yet.
        iban: The account to pay to, if not the one that the order was paid from.
    """
    with connect() as db:  # one transaction: all of it or nothing
        order = the_order(db, order_id)
        before = refunds_of(db, order_id)
        if done := next((row for row in before if row["call_id"] == context.call_id), None):
            return done  # an earlier attempt at this very call came so far
        left = order["total_cents"] - sum(row["amount_cents"] for row in before)
        if amount_cents > left:
            raise ToolError(f"only {left} cents of order {order_id} are left to refund")
        db.execute(
            "INSERT INTO shop.refunds (call_id, order_id, amount_cents, reason, iban) VALUES (%s, %s, %s, %s, %s)",
            (context.call_id, order_id, amount_cents, reason, iban),
        )
        context.log.info("order %s: %d cents refunded", order_id, amount_cents)
        return refunds_of(db, order_id)[-1]


@orders.tool(effect="write", prompt="Send a letter about order {order_id}: {text}")
def send_letter(order_id: str, text: str) -> str:
    """Send a letter to who ordered. Sent twice it comes twice."""
    with connect() as db:
        order = the_order(db, order_id)
        db.execute("INSERT INTO shop.letters (order_id, text) VALUES (%s, %s)", (order_id, text))
    return f"The letter to {order['customer']} is on its way."


def connect() -> Db:
    """The shop's database; `with` commits or rolls back, and closes."""
    return psycopg.connect(os.environ["ORDERS_DATABASE_URL"], row_factory=dict_row, connect_timeout=5)


def the_order(db: Db, order_id: str) -> Row:
    """The order of that id, held until the transaction ends."""
    found = db.execute("SELECT * FROM shop.orders WHERE id = %s FOR NO KEY UPDATE", (order_id,)).fetchone()
    if found is None:
        raise ToolError(f"there is no order {order_id!r}; find_orders lists those that there are")
    return found


def refunds_of(db: Db, order_id: str) -> list[Row]:
    """The refunds of an order, the oldest first."""
    words = "SELECT call_id, amount_cents, reason, made_at FROM shop.refunds WHERE order_id = %s ORDER BY made_at"
    return db.execute(words, (order_id,)).fetchall()


def create() -> None:
    """Make the tables and a few orders, unless they are there."""
    with connect() as db:
        db.execute(TABLES)


TABLES = """
CREATE SCHEMA IF NOT EXISTS shop;
CREATE TABLE IF NOT EXISTS shop.orders (
    id text PRIMARY KEY, customer text NOT NULL, total_cents int NOT NULL, status text NOT NULL,
    ordered_at timestamptz NOT NULL DEFAULT clock_timestamp());
CREATE TABLE IF NOT EXISTS shop.refunds (
    call_id text PRIMARY KEY, order_id text NOT NULL REFERENCES shop.orders, amount_cents int NOT NULL,
    reason text NOT NULL, iban text, made_at timestamptz NOT NULL DEFAULT clock_timestamp());
CREATE TABLE IF NOT EXISTS shop.letters (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, order_id text NOT NULL REFERENCES shop.orders, text text NOT NULL);
INSERT INTO shop.orders (id, customer, total_cents, status) VALUES
    ('1001', 'Ada Lovelace <ada@example.com>', 2499, 'shipped'),
    ('1002', 'Alan Turing <alan@example.com>', 8900, 'paid'),
    ('1003', 'Grace Hopper <grace@example.com>', 129900, 'shipped') ON CONFLICT DO NOTHING;
"""

if __name__ == "__main__":
    if sys.argv[1:] != ["create"]:
        sys.exit("python -m examples.orders create")
    create()
