"""A session's page tells admins that the session is on legal hold, and why."""

import pytest
from people import member
from rows.stage import Stage

from models.audit.legal_hold import LegalHold
from models.audit.principal import system
from models.database.transactions import transaction


@pytest.mark.parametrize("is_of_session", [True, False])
def test_the_page_of_a_session_names_the_hold_and_its_reason_until_it_is_released(
    api: str, stage: Stage, is_of_session: bool
) -> None:
    session_id, by = stage.session(), system("test", stage.workspace_id)
    path = f"/inbox/sessions/{session_id}"
    words = "On legal hold" if is_of_session else "The workspace is on legal hold"
    with transaction(stage.workspace_id) as db:
        hold = LegalHold.set_on(db, by, session_id if is_of_session else None, "Case 17, <b>Müller</b>.")
    with member(stage, "admin").client(api) as admin, member(stage, "viewer").client(api) as viewer:
        page = admin.get(path).text
        assert f"<strong>{words}</strong> since" in page
        assert "Case 17, &lt;b&gt;Müller&lt;/b&gt;. Nothing of this session is deleted" in page
        assert "legal hold" not in viewer.get(path).text, "holds are for admins, as by the API"
        with transaction(stage.workspace_id) as db:
            LegalHold.of_id(db, hold.id).release(db, by)
        assert "legal hold" not in admin.get(path).text
