"""The audit's seals: what each of them signed, how far each chain is sealed; and nobody changes what stands in the audit."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

SYSTEM_SEES = {
    "audit": "chain, seq, workspace_id, at",
    "sealed": "chain, seq, workspace_id",
    "session": "audit_seq",
    "workspace": "audit_seq",
}


def upgrade() -> None:
    # Finds the acts of a span of time, and costs an act that is inserted next to nothing.
    op.create_index(
        "audit_at",
        "audit",
        ["at"],
        unique=False,
        postgresql_using="brin",
        postgresql_with={"pages_per_range": 16, "autosummarize": True},
    )
    op.create_table(
        "seal",
        sa.Column("workspace_id", sa.String(), nullable=False),
        sa.Column("seq", sa.BigInteger(), nullable=False),
        sa.Column("key_id", sa.String(), nullable=False),
        sa.Column("signature", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("workspace_id", "seq"),
    )
    op.create_table(
        "sealed",
        sa.Column("chain", sa.String(), nullable=False),
        sa.Column("workspace_id", sa.String(), nullable=False),
        sa.Column("seq", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("chain"),
    )
    for table, more in (("seal", ""), ("sealed", ", UPDATE")):
        op.execute(f"GRANT SELECT, INSERT{more} ON {table} TO assent_app")
        op.execute(f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY")
        op.execute(
            f"CREATE POLICY one_workspace ON {table} TO assent_app USING (workspace_id = current_setting('assent.workspace', true))"
        )
    for table, columns in SYSTEM_SEES.items():
        op.execute(f"GRANT SELECT ({columns}) ON {table} TO assent_system")
    for table in ("audit", "sealed"):
        op.execute(f"CREATE POLICY every_workspace ON {table} TO assent_system USING (true)")
    _only_added_to("audit")
    _only_added_to("seal")


def _only_added_to(table: str) -> None:
    """Refuse every change of what is there, to the owner as well. Triggers for each statement: an insert does not meet them."""
    op.execute(
        "CREATE OR REPLACE FUNCTION assent_only_added_to() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
        " RAISE EXCEPTION 'the audit is only added to: % of % is refused', TG_OP, TG_TABLE_NAME"
        " USING ERRCODE = 'insufficient_privilege'; END $$"
    )
    op.execute(
        f"CREATE TRIGGER only_added_to BEFORE UPDATE OR DELETE OR TRUNCATE ON {table}"
        " FOR EACH STATEMENT EXECUTE FUNCTION assent_only_added_to()"
    )
