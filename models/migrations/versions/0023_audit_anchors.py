"""Anchors, and the one function that deletes acts of the audit: those that a sealed anchor names."""

import sqlalchemy as sa
from alembic import op

from models.migrations.rights import create_definer_functions, give_app, give_definer, give_system

revision = "0023"
down_revision = "0022"
branch_labels = None
depends_on = None
serves = tuple(f"{number:04}" for number in range(22, 0, -1))
"""Revisions of earlier releases that work with the schema after this migration."""

CUT = """
    RETURNS bigint LANGUAGE plpgsql AS $$
    #variable_conflict use_column
    DECLARE
        named jsonb;
        one record;
        deleted bigint;
        total bigint := 0;
    BEGIN
        PERFORM FROM workspace WHERE id = of_workspace FOR NO KEY UPDATE;
        PERFORM FROM audit_anchor WHERE workspace_id = of_workspace AND seq = anchor AND cut_at IS NULL;
        IF NOT FOUND THEN
            RETURN NULL;
        END IF;
        SELECT details -> 'cut' INTO named FROM audit
        WHERE chain = of_workspace AND seq = anchor AND action = 'audit.anchored'
            AND EXISTS (SELECT FROM seal WHERE workspace_id = of_workspace AND seq = anchor)
            AND EXISTS (
                SELECT FROM seal JOIN audit later ON later.chain = seal.workspace_id AND later.seq = seal.seq
                WHERE seal.workspace_id = of_workspace AND seal.seq > anchor AND later.action = 'audit.sealed'
            );
        IF named IS NULL OR EXISTS (
            SELECT FROM legal_hold WHERE workspace_id = of_workspace AND released_at IS NULL
            AND (session_id IS NULL OR named ? session_id::text)
        ) THEN
            RETURN NULL;
        END IF;
        FOR one IN SELECT key AS of_chain, (value ->> 0)::bigint AS last, (value ->> 2)::bigint AS expected FROM jsonb_each(named)
        LOOP
            DELETE FROM audit_text USING audit
            WHERE audit_text.chain = one.of_chain AND audit_text.seq <= one.last AND audit_text.workspace_id = of_workspace
                AND audit.chain = audit_text.chain AND audit.seq = audit_text.seq AND audit.action <> 'audit.anchored';
            IF one.of_chain = of_workspace THEN
                DELETE FROM seal USING audit
                WHERE seal.workspace_id = of_workspace AND seal.seq <= one.last
                    AND audit.chain = seal.workspace_id AND audit.seq = seal.seq AND audit.action <> 'audit.anchored';
            END IF;
            DELETE FROM audit WHERE chain = one.of_chain AND seq <= one.last AND workspace_id = of_workspace
                AND action <> 'audit.anchored';
            GET DIAGNOSTICS deleted = ROW_COUNT;
            IF deleted <> one.expected THEN
                RAISE EXCEPTION 'anchor % names % acts of %, and there are %', anchor, one.expected, one.of_chain, deleted;
            END IF;
            total := total + deleted;
        END LOOP;
        UPDATE audit_anchor SET cut_at = assent_now() WHERE workspace_id = of_workspace AND seq = anchor;
        RETURN total;
    END
    $$
"""
"""Deletes the acts that a sealed anchor names, with their texts and signatures, and returns how many acts. Returns NULL, and
deletes nothing, if the anchor is not sealed, is done already, or names what is on hold."""

ONLY_ADDED_TO = """
    CREATE OR REPLACE FUNCTION assent_only_added_to() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        IF TG_OP = 'DELETE' AND current_user = 'assent_definer' THEN
            RETURN NULL;
        END IF;
        RAISE EXCEPTION 'the audit is only added to: % of % is refused', TG_OP, TG_TABLE_NAME
            USING ERRCODE = 'insufficient_privilege';
    END
    $$
"""
"""As in the baseline, except for the function above: its owner cannot log in."""


def upgrade() -> None:
    op.create_table(
        "audit_anchor",
        sa.Column("workspace_id", sa.String, primary_key=True),
        sa.Column("seq", sa.BigInteger, primary_key=True),
        sa.Column("cut_to", sa.BigInteger),
        sa.Column("cut_at", sa.DateTime(timezone=True)),
    )
    for name, condition in (("due", "cut_at IS NULL"), ("cut_to", "cut_to IS NOT NULL")):
        op.create_index(f"audit_anchor_{name}", "audit_anchor", ["workspace_id", "seq"], postgresql_where=sa.text(condition))
    give_app("audit_anchor", "SELECT, INSERT")
    give_system("audit_anchor", "SELECT")
    give_definer("audit_anchor", "SELECT, UPDATE (cut_at)")
    give_definer("audit_text", "SELECT (chain, seq, workspace_id), DELETE")
    give_definer("seal", "SELECT (workspace_id, seq), DELETE")
    give_definer("legal_hold", "SELECT (workspace_id, session_id, released_at)")
    op.execute("GRANT SELECT (chain, seq), DELETE ON audit TO assent_definer")
    # A row's lock needs the right to update a column. This one cannot change: it equals the id.
    op.execute("GRANT UPDATE (workspace_id) ON workspace TO assent_definer")
    op.execute(ONLY_ADDED_TO)
    create_definer_functions({"assent_cut_audit(of_workspace text, anchor bigint)": CUT}, caller="assent_system")
