"""Thousands of rows, as copies of rows that Assent itself wrote: so a benchmark need not know the tables."""

import psycopg

Db = psycopg.Connection[tuple[object, ...]]

_COLUMNS = """
SELECT column_name FROM information_schema.columns
WHERE table_schema = 'public' AND table_name = %s AND is_generated = 'NEVER'
"""


def copy(db: Db, table: str, where: str, changed: dict[str, str], count: int = 1, first: int = 1) -> None:
    """Insert `count` copies of each row of `table` for which `where` holds. `changed` gives columns as SQL expressions.

    The expressions may use the columns of `row`, and `n`, which counts from `first`. Foreign keys are not checked meanwhile.
    """
    columns = [str(row[0]) for row in db.execute(_COLUMNS, (table,))]
    names = ", ".join(f'"{name}"' for name in columns)
    values = ", ".join(changed.get(name, f'row."{name}"') for name in columns)
    db.execute("SET session_replication_role = replica")
    source = f"(SELECT * FROM {table} WHERE {where}) AS row, generate_series({first}, {first + count - 1}) AS n"
    db.execute(f"INSERT INTO {table} ({names}) SELECT {values} FROM {source}")
    db.execute("SET session_replication_role = origin")


def number(db: Db, statement: str, values: tuple[object, ...] = ()) -> int:
    """Return the only value of a statement's only row, as an integer."""
    row = db.execute(statement, values).fetchone()
    assert row
    return int(str(row[0]))
