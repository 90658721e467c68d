"""Functions with which migrations grant rights to roles. Released migrations rely on these functions: never change their effect."""

from alembic import op

_OURS = "workspace_id = current_setting('assent.workspace', true)"
_NOT_REMOVED = """
    (NOT EXISTS (SELECT FROM removal WHERE removal.subject_id = session_id)
        OR session_id = current_setting('assent.removing', true))
"""


def give_app(
    table: str,
    rights: str,
    *,
    using: str | None = None,
    policy: str = "one_workspace",
    check: str = "",
    of_session: bool = False,
) -> None:
    """Give `assent_app` rights to a table, behind a policy. The default policy shows only rows of the transaction's workspace.

    `of_session`: the policy also hides rows of deleted sessions, but from the transaction that removes them.
    """
    if of_session:
        using, check = f"{_OURS} AND {_NOT_REMOVED}", f"WITH CHECK ({_OURS})"
    using = using or _OURS
    op.execute(f"GRANT {rights} ON {table} TO assent_app")
    op.execute(f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY")
    op.execute(f"CREATE POLICY {policy} ON {table} TO assent_app USING ({using}) {check}")


def give_system(table: str, rights: str) -> None:
    """Give `assent_system` rights to a table, over the rows of all workspaces."""
    op.execute(f"GRANT {rights} ON {table} TO assent_system")
    op.execute(f"CREATE POLICY every_workspace ON {table} TO assent_system USING (true)")


def give_definer(table: str, rights: str) -> None:
    """Give `assent_definer`, which owns the functions over all workspaces, rights to a table."""
    op.execute(f"GRANT {rights} ON {table} TO assent_definer")
    op.execute(f"CREATE POLICY definer_functions ON {table} TO assent_definer USING (true)")


def create_definer_functions(functions: dict[str, str], *, caller: str = "assent_app") -> None:
    """Create functions, by signature, that `caller` may call and that run as `assent_definer`. SQL is the default language.

    `assent_definer` has no password and only the rights of `give_definer`, so a hole in one function opens nothing else.
    """
    # ALTER FUNCTION needs a new owner who may create in the schema.
    op.execute("GRANT CREATE ON SCHEMA public TO assent_definer")
    for signature, rest in functions.items():
        name = signature.partition("(")[0]
        language = "" if "LANGUAGE" in rest else "LANGUAGE sql"
        op.execute(f"CREATE FUNCTION {signature} {rest} {language} SECURITY DEFINER SET search_path = public, pg_temp")
        op.execute(f"REVOKE ALL ON FUNCTION {name} FROM PUBLIC")
        op.execute(f"GRANT EXECUTE ON FUNCTION {name} TO {caller}")
        op.execute(f"ALTER FUNCTION {name} OWNER TO assent_definer")
    op.execute("REVOKE CREATE ON SCHEMA public FROM assent_definer")
