"""People: who they are, their roles and groups in workspaces, and how they sign in."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

from models.database import ids
from models.migrations.rights import create_definer_functions, give_app, give_definer

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

STRING = sa.String()
BIG = sa.BigInteger()
BYTES = sa.LargeBinary()
TIME = sa.DateTime(timezone=True)
JSON = postgresql.JSONB()
STRINGS = postgresql.ARRAY(sa.Text())

APP_RIGHTS = {
    "invitation": "SELECT, INSERT, UPDATE",
    "member": "SELECT, INSERT, UPDATE",
    "membership": "SELECT, INSERT, DELETE",
    "passkey": "SELECT, INSERT, UPDATE, DELETE",
    "person_group": "SELECT, INSERT, UPDATE, DELETE",
    "sign_in": "SELECT, INSERT, UPDATE, DELETE",
}
"""What `assent_app` may do with the rows of one workspace."""

DEFINER_RIGHTS = {
    "identity": "SELECT (issuer, subject, person_id)",
    "invitation": "SELECT (id, workspace_id, email, secret_sha256)",
    "member": "SELECT (workspace_id, person_id, role, deactivated_at)",
    "membership": "SELECT (workspace_id, person_id, group_id)",
    "passkey": "SELECT (id, workspace_id, person_id, credential_id)",
    "person": "SELECT (id, email)",
    "sign_in": "SELECT (id, workspace_id, person_id, method, secret_sha256, seen_at, idle_until, expires_at, ended_at)",
}

DEFINER_FUNCTIONS = {
    # The sign-in with this secret, if it is open, with the role and the groups that the person has now.
    "assent_find_sign_in(secret_digest text)": """
        RETURNS TABLE (id text, workspace_id text, person_id text, method text, seen_at timestamptz, role text, group_ids text[])
        AS $$
            SELECT s.id, s.workspace_id, s.person_id, s.method, s.seen_at, m.role, ARRAY(
                SELECT g.group_id::text FROM membership g WHERE g.workspace_id = s.workspace_id AND g.person_id = s.person_id
            )
            FROM sign_in s JOIN member m ON m.workspace_id = s.workspace_id AND m.person_id = s.person_id
            WHERE s.secret_sha256 = secret_digest AND s.ended_at IS NULL AND m.deactivated_at IS NULL
                AND s.idle_until > assent_now() AND s.expires_at > assent_now()
        $$
    """,
    # The invitation with this secret, and the person with its e-mail address.
    "assent_find_invitation(secret_digest text)": """
        RETURNS TABLE (id text, workspace_id text, person_id text)
        AS $$
            SELECT i.id, i.workspace_id, p.id FROM invitation i LEFT JOIN person p ON p.email = i.email
            WHERE i.secret_sha256 = secret_digest
        $$
    """,
    # The passkey with this credential's id, which its authenticator made at random.
    "assent_find_passkey(credential bytea)": """
        RETURNS TABLE (id text, workspace_id text) AS $$ SELECT id, workspace_id FROM passkey WHERE credential_id = credential $$
    """,
    # The person with an account at an issuer, which has vouched for the account in this request.
    "assent_find_identity(of_issuer text, of_subject text)": """
        RETURNS text AS $$ SELECT person_id FROM identity WHERE issuer = of_issuer AND subject = of_subject $$
    """,
    # The person with an e-mail address.
    "assent_find_person(of_email text)": """
        RETURNS text AS $$ SELECT id FROM person WHERE email = of_email $$
    """,
    # The workspaces in which a person has a role now.
    "assent_workspaces_of(of_person text)": """
        RETURNS SETOF text
        AS $$ SELECT workspace_id FROM member WHERE person_id = of_person AND deactivated_at IS NULL ORDER BY workspace_id $$
    """,
}
"""By signature. They run as `assent_definer`, and return ids, roles and times alone."""


def upgrade() -> None:
    create_people()
    create_roles_and_groups()
    create_ways_to_sign_in()
    add_organization()
    grant_app_rights()
    give_definer_rights()
    create_definer_functions(DEFINER_FUNCTIONS)


def create_people() -> None:
    op.create_table(
        "organization",
        sa.Column("id", STRING, nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_table(
        "person",
        sa.Column("id", STRING, nullable=False),
        sa.Column("email", STRING, nullable=False),
        sa.Column("name", STRING, nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("email"),
    )
    op.create_table(
        "identity",
        sa.Column("issuer", STRING, nullable=False),
        sa.Column("subject", STRING, nullable=False),
        sa.Column("person_id", STRING, nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.ForeignKeyConstraint(["person_id"], ["person.id"]),
        sa.PrimaryKeyConstraint("issuer", "subject"),
    )


def create_roles_and_groups() -> None:
    op.create_table(
        "member",
        sa.Column("workspace_id", STRING, nullable=False),
        sa.Column("person_id", STRING, nullable=False),
        sa.Column("role", STRING, nullable=False),
        sa.Column("source", STRING, server_default="direct", nullable=False),
        sa.Column("password_hash", STRING),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("deactivated_at", TIME),
        sa.ForeignKeyConstraint(["workspace_id"], ["workspace.id"]),
        sa.ForeignKeyConstraint(["person_id"], ["person.id"]),
        sa.PrimaryKeyConstraint("workspace_id", "person_id"),
    )
    op.create_index("member_of_person", "member", ["person_id"])
    op.create_table(
        "person_group",
        sa.Column("id", STRING, nullable=False),
        sa.Column("workspace_id", STRING, nullable=False),
        sa.Column("name", STRING, nullable=False),
        sa.Column("source", STRING, server_default="direct", nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("updated_at", TIME, nullable=False),
        sa.ForeignKeyConstraint(["workspace_id"], ["workspace.id"]),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("person_group_of_workspace", "person_group", ["workspace_id", "id"])
    op.create_index(
        "person_group_of_issuer",
        "person_group",
        ["workspace_id", "source", "name"],
        unique=True,
        postgresql_where=sa.text("source <> 'direct'"),
    )
    op.create_table(
        "membership",
        sa.Column("group_id", STRING, nullable=False),
        sa.Column("person_id", STRING, nullable=False),
        sa.Column("workspace_id", STRING, nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.ForeignKeyConstraint(["group_id"], ["person_group.id"]),
        sa.ForeignKeyConstraint(["person_id"], ["person.id"]),
        sa.PrimaryKeyConstraint("group_id", "person_id"),
    )
    op.create_index("membership_of_person", "membership", ["workspace_id", "person_id"])


def create_ways_to_sign_in() -> None:
    op.create_table(
        "invitation",
        sa.Column("id", STRING, nullable=False),
        sa.Column("workspace_id", STRING, nullable=False),
        sa.Column("email", STRING, nullable=False),
        sa.Column("role", STRING, nullable=False),
        sa.Column("group_ids", STRINGS, nullable=False),
        sa.Column("renews", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("secret_sha256", STRING, nullable=False),
        sa.Column("invited_by", STRING, nullable=False),
        sa.Column("invited_at", TIME, nullable=False),
        sa.Column("expires_at", TIME, nullable=False),
        sa.Column("accepted_at", TIME),
        sa.Column("deleted_at", TIME),
        sa.ForeignKeyConstraint(["workspace_id"], ["workspace.id"]),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("secret_sha256"),
    )
    op.create_index("invitation_of_workspace", "invitation", ["workspace_id", "id"])
    op.create_table(
        "sign_in",
        sa.Column("id", STRING, nullable=False),
        sa.Column("workspace_id", STRING, nullable=False),
        sa.Column("person_id", STRING, nullable=False),
        sa.Column("secret_sha256", STRING, nullable=False),
        sa.Column("method", STRING, nullable=False),
        sa.Column("address", STRING),
        sa.Column("user_agent", STRING),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("seen_at", TIME, nullable=False),
        sa.Column("idle_until", TIME, nullable=False),
        sa.Column("expires_at", TIME, nullable=False),
        sa.Column("ended_at", TIME),
        sa.ForeignKeyConstraint(["workspace_id"], ["workspace.id"]),
        sa.ForeignKeyConstraint(["person_id"], ["person.id"]),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("secret_sha256"),
    )
    op.create_index("sign_in_of_person", "sign_in", ["workspace_id", "person_id"])
    op.create_table(
        "passkey",
        sa.Column("id", STRING, nullable=False),
        sa.Column("workspace_id", STRING, nullable=False),
        sa.Column("person_id", STRING, nullable=False),
        sa.Column("credential_id", BYTES, nullable=False),
        sa.Column("public_key", BYTES, nullable=False),
        sa.Column("sign_count", BIG, nullable=False),
        sa.Column("name", STRING, nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("used_at", TIME),
        sa.ForeignKeyConstraint(["workspace_id"], ["workspace.id"]),
        sa.ForeignKeyConstraint(["person_id"], ["person.id"]),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("credential_id"),
    )
    op.create_index("passkey_of_person", "passkey", ["workspace_id", "person_id"])
    op.create_table(
        "ceremony",
        sa.Column("id", STRING, nullable=False),
        sa.Column("data", JSON, nullable=False),
        sa.Column("expires_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("ceremony_expiry", "ceremony", ["expires_at"])


def add_organization() -> None:
    """The one row. Nobody may add another."""
    organization = sa.table("organization", sa.column("id"), sa.column("created_at"))
    op.execute(organization.insert().values(id=ids.new("org"), created_at=sa.func.clock_timestamp()))


def grant_app_rights() -> None:
    for table, rights in APP_RIGHTS.items():
        give_app(table, rights)
    # People belong to no workspace. Each workspace sees those who have, or had, a role in it.
    seen = "EXISTS (SELECT FROM member m WHERE m.person_id = {} AND m.workspace_id = current_setting('assent.workspace', true))"
    new = "WITH CHECK (true)"  # a person is inserted before the role
    for table, column, rights, check in (
        ("person", "person.id", "SELECT, INSERT, UPDATE (name)", new),
        ("identity", "identity.person_id", "SELECT, INSERT", ""),
    ):
        give_app(table, rights, policy="members", using=seen.format(column), check=check)
    # These rows belong to no workspace and no person.
    for table, rights in (("organization", "SELECT"), ("ceremony", "SELECT, INSERT, DELETE")):
        give_app(table, rights, policy="everybody", using="true")


def give_definer_rights() -> None:
    for table, rights in DEFINER_RIGHTS.items():
        give_definer(table, rights)
