"""A session needs attention if its run ended early: the list's condition and the words agree."""

import json
from collections.abc import Iterator
from itertools import product
from typing import get_args

import pytest
from rows.stage import Stage, say

from models.database.rows import Db
from models.database.transactions import transaction
from models.pure.state_words import ENDED_EARLY, session_state
from models.pure.states import THREAD, RunLimit
from models.session.event.last_lines import first_and_last_lines
from models.session.row import AT_WORK, NEEDS_ATTENTION

REASONS = [
    None,
    {"type": "end_turn"},
    {"type": "end_turn", "ended_by": "user:user_1"},
    *({"type": name} for name in ("retries_exhausted", "refusal", "budget_reached", "another")),
    *({"type": "end_turn", "limit_reached": limit} for limit in get_args(RunLimit)),
]


@pytest.fixture
def db(stage: Stage) -> Iterator[Db]:
    """A transaction of the stage's workspace."""
    with transaction(stage.workspace_id) as opened:
        yield opened


def test_the_conditions_of_the_list_agree_with_the_words(db: Db) -> None:
    row = "(VALUES (CAST(%(status)s AS text), CAST(%(reason)s AS jsonb))) AS session (status, stop_reason)"
    for status, reason in product(THREAD, REASONS):
        sql = f"SELECT {AT_WORK}, coalesce({NEEDS_ATTENTION}, false) FROM {row}"
        [(is_at_work, needs_attention)] = db.rows(sql, status=status, reason=json.dumps(reason) if reason else None)
        word = session_state(status, reason).word
        assert needs_attention == (word in ENDED_EARLY), (status, reason)
        assert is_at_work == (word in {"working", "retrying", "stopping"}), (status, reason)


def test_a_list_has_the_first_message_and_the_last_line(stage: Stage) -> None:
    session_id, empty = stage.session(), stage.session()
    stage.message(session_id, "# Please\n**release** it.")
    stage.reply(session_id, say("I begin."))
    stage.message(session_id, "And now?")
    turn = stage.claim(session_id)
    assert turn
    stage.fail(turn, retryable=False)
    with transaction(stage.workspace_id) as opened:
        lines = first_and_last_lines(opened, [session_id, empty])
    assert lines == {session_id: ("Please release it.", "Overloaded"), empty: ("", "")}
