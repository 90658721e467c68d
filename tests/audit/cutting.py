"""A workspace whose audit is old enough to be cut, and the steps of a cut."""

from pathlib import Path

from audit.tampering import act, sealed
from own_database import Clock
from rows.stage import Stage

from models.audit import seal_key, signed_heads, verifying
from models.audit.cutting import anchoring, sweep
from models.audit.cutting.terms import Terms
from models.database import clock as database_clock
from models.database.transactions import transaction
from models.flow.begin import sessions
from models.workspace.row import Workspace

DAY = 24 * 3600
REASON = "Older than a month."


def archived(stage: Stage) -> str:
    """Run a session with one call, and archive it. Returns the session's id."""
    session_id = act(stage)
    stage.locked(session_id, sessions.archive)
    return session_id


def keeps(stage: Stage, days: int | None) -> None:
    """Have the workspace keep its audit for so many days; None: for ever."""
    with transaction(stage.workspace_id) as db:
        Workspace.change_policies(db, stage.principal, {"retention": {"audit_days": days} if days else None})


def grown_old(stage: Stage, clock: Clock) -> None:
    """Seal everything, and let two days pass, of which the workspace keeps one."""
    keeps(stage, 1)
    sealed(stage)
    clock.advance(2 * DAY)


def export_to(stage: Stage, file: Path) -> Path:
    """Write an export."""
    with transaction(stage.workspace_id) as db:
        now = database_clock.now(db)
    file.write_text("".join(verifying.export(stage.workspace_id, now)), "utf-8")
    return file


def anchor(stage: Stage, file: Path) -> Terms:
    """Write the anchors for what the export has."""
    key = seal_key.own()
    assert key
    with signed_heads.open_file(signed_heads.path()) as heads:
        return anchoring.anchor(anchoring.read(stage.workspace_id, file), stage.principal, REASON, key, heads)


def delete(stage: Stage) -> int:
    """Delete what may go, as the sweep does. Returns the number of acts."""
    return sum(sweep.cut(due) or 0 for due in sweep.due() if due.workspace_id == stage.workspace_id)


def cut(stage: Stage, file: Path) -> Terms:
    """Export, anchor, seal and delete."""
    terms = anchor(stage, export_to(stage, file))
    sealed(stage)
    assert delete(stage) == terms.acts
    return terms
