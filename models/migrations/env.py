"""Connects alembic to the database as the owner. The time-outs keep a migration from blocking other work for long.

The transaction of the migrations also stores which releases work with the new schema (`models.database.revisions`).
"""

from alembic import context
from sqlalchemy import NullPool, create_engine, text

from models.schema import TABLES

with create_engine(context.config.get_main_option("sqlalchemy.url") or "", poolclass=NullPool).connect() as connection:
    connection.execute(text("SET lock_timeout = '5s'"))
    connection.execute(text("SET statement_timeout = '60s'"))
    connection.commit()
    context.configure(connection=connection, target_metadata=TABLES[0].metadata)
    newest = context.script.get_revisions("head")[0]
    with context.begin_transaction():
        context.run_migrations()
        served = " ".join([newest.revision, *newest.module.serves])
        connection.execute(text(f"COMMENT ON TABLE alembic_version IS '{served}'"))  # of our own scripts
