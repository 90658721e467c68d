"""Spend limits: the running sums move to rows of their own, whose newest version an index finds first.

Processes of the release before change the sums in the limit's row. A trigger carries their changes over, and writes into the
limit's row what all processes have counted. Between two such changes they do not see what newer processes count: so the trigger
refuses their claim, as a transient fault, if the limit is reached.
"""

from alembic import op

from models.migrations.rights import give_app

revision = "0034"
down_revision = "0033"
branch_labels = None
depends_on = None
serves: tuple[str, ...] = tuple(f"{number:04}" for number in range(33, 0, -1))
"""Revisions of earlier releases that work with the schema after this migration."""

TABLE = """
    CREATE TABLE spend_sum (
        limit_id varchar NOT NULL REFERENCES spend_limit ON DELETE CASCADE,
        workspace_id varchar NOT NULL,
        number bigint NOT NULL,
        since date NOT NULL,
        spent numeric NOT NULL,
        reserved numeric NOT NULL,
        PRIMARY KEY (limit_id, number)
    )
"""
# The release before inserts a limit with its first day, and this release without one.
CARRY = """
    CREATE FUNCTION assent_carry_spend() RETURNS trigger LANGUAGE plpgsql SET search_path = public, pg_temp AS $$
    DECLARE
        sums spend_sum;
        day date := NEW.since;
        dollars numeric := NEW.spent;
    BEGIN
        IF TG_OP = 'INSERT' THEN
            INSERT INTO spend_sum (limit_id, workspace_id, number, since, spent, reserved)
            VALUES (NEW.id, NEW.workspace_id, 1, NEW.since, NEW.spent, NEW.reserved);
            RETURN NEW;
        END IF;
        SELECT * INTO STRICT sums FROM spend_sum WHERE limit_id = NEW.id ORDER BY number DESC LIMIT 1;
        IF NEW.reserved > OLD.reserved AND (OLD.since, OLD.spent, OLD.reserved) <> (sums.since, sums.spent, sums.reserved)
            AND sums.spent + sums.reserved >= NEW.amount
        THEN
            RAISE EXCEPTION 'a newer release has counted more at this spend limit' USING ERRCODE = 'serialization_failure';
        END IF;
        IF OLD.since = NEW.since THEN
            dollars := NEW.spent - OLD.spent;
        END IF;
        NEW.since := greatest(day, sums.since);
        NEW.spent := CASE WHEN sums.since = NEW.since THEN sums.spent ELSE 0 END
            + CASE WHEN day = NEW.since THEN dollars ELSE 0 END;
        NEW.reserved := sums.reserved + NEW.reserved - OLD.reserved;
        UPDATE spend_sum SET number = number + 1, since = NEW.since, spent = NEW.spent, reserved = NEW.reserved
        WHERE limit_id = NEW.id AND number = sums.number;
        RETURN NEW;
    END
    $$
"""


def upgrade() -> None:
    op.execute(TABLE)
    give_app("spend_sum", "SELECT, INSERT, UPDATE")
    op.execute(CARRY)
    # Creating triggers waits for transactions that change limits, and keeps further ones out until the commit.
    op.execute("""
        CREATE TRIGGER carry_first_sums AFTER INSERT ON spend_limit FOR EACH ROW WHEN (NEW.since > '0001-01-01')
        EXECUTE FUNCTION assent_carry_spend()
    """)
    op.execute("""
        CREATE TRIGGER carry_sums BEFORE UPDATE OF since, spent, reserved ON spend_limit FOR EACH ROW
        EXECUTE FUNCTION assent_carry_spend()
    """)
    op.execute("""
        INSERT INTO spend_sum (limit_id, workspace_id, number, since, spent, reserved)
        SELECT id, workspace_id, 1, since, spent, reserved FROM spend_limit
    """)
    for column, value in (("since", "'0001-01-01'"), ("spent", "0"), ("reserved", "0")):
        op.execute(f"ALTER TABLE spend_limit ALTER COLUMN {column} SET DEFAULT {value}")
