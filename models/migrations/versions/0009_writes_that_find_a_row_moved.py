"""A compare-and-swap fails in the database, so that its transaction's COMMIT can be sent along with it."""

from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("""
        CREATE FUNCTION assent_still(unchanged boolean, otherwise text) RETURNS boolean LANGUAGE plpgsql AS $$
        BEGIN
            IF unchanged THEN
                RETURN true;
            END IF;
            RAISE EXCEPTION '%', otherwise USING ERRCODE = 'AS001';
        END
        $$
    """)
