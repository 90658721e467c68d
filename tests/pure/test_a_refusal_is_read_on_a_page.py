"""A page says what is wrong with a form in the words of the form."""

import re
from pathlib import Path

import pytest

from api.desk.rendering.refusals import sentence


@pytest.mark.parametrize(
    ("refusal", "words"),
    [
        ("name: String should have at least 1 character.", "Name: must not be empty."),
        ("email: must be an e-mail address.", "E-mail address: must be an e-mail address."),
        ("rule.match: has an unbalanced parenthesis.", "Calls: has an unbalanced parenthesis."),
        ("quiet_until: quiet hours need both.", "Quiet until: quiet hours need both."),
        ("body: must have at most 3000 bytes; send less at once.", "Form: must have at most 3000 bytes; send less at once."),
        ("agent is archived.", "Agent is archived."),
        ("The policy has changed: open the page again.", "The policy has changed: open the page again."),
        (
            "Approval appr_01K9ZQ3T5VJ8W2X4Y6A7B8C9D0 is already denied, by user:user_01K9ZQ3T5VJ8W2X4Y6A7B8C9D0.",
            "This approval is already denied.",
        ),
        (
            "The deadline of approval appr_01K9ZQ3T5VJ8W2X4Y6A7B8C9D0, 2026-11-27T06:00:00.123456Z, has passed.",
            "The deadline of this approval, 2026-11-27 06:00 UTC, has passed.",
        ),
        (
            "Only people decide approval appr_01K9ZQ3T5VJ8W2X4Y6A7B8C9D0: of group:grp_01K9ZQ3T5VJ8W2X4Y6A7B8C9D0 (finance).",
            "Only people decide this approval: of finance.",
        ),
        ("user:user_01K9ZQ3T5VJ8W2X4Y6A7B8C9D0 is the last admin.", "This person is the last admin."),
        ("The webhook endpoint whe_01K9ZQ3T5VJ8W2X4Y6A7B8C9D0 is disabled.", "This webhook endpoint is disabled."),
        (
            "expected_input_sha256 is not the hash of what would run, which is 0123456789abcdef. Nothing was decided.",
            "The input has changed since this page was opened. Nothing was decided: look at it again.",
        ),
        ("updated_input: is longer than 65536 bytes.", "Input: is longer than 65536 bytes."),
        (
            "denial_reasons: List should have at most 9 items after validation, not 40.",
            "Reasons: at most 9, and these are 40.",
        ),
        (
            "approval: 0 people are in {group:grp_01K9ZQ3T5VJ8W2X4Y6A7B8C9D0}, the sets of all levels together, and 2 must.",
            "Approvers: 0 people are named at every level, and 2 must.",
        ),
        (
            "version: the agent is at version 3, not 1; read it again, then repeat.",
            "Version 3 was saved since this page was opened. Nothing was changed: open the page again.",
        ),
        (
            "Session sesn_01K9ZQ3T5VJ8W2X4Y6A7B8C9D0 is running: send user.interrupt and wait until it is idle, then archive.",
            "This session is running: stop the run and wait until it ends. Then archive.",
        ),
        (
            "Another voter has edited the input. Look at decided_input, then vote with expected_input_sha256.",
            "The input has changed since this page was opened. Nothing was decided: look at it again.",
        ),
        (
            "None was decided, by “show session sesn_01K9ZQ3T5VJ8W2X4Y6A7B8C9D0 > expected_input_sha256”. Your role does not.",
            "None was decided, by “show session sesn_01K9ZQ3T5VJ8W2X4Y6A7B8C9D0 > expected_input_sha256”. Your role does not.",
        ),
        (
            "approval 'appr_01K9ZQ3T5VJ8W2X4Y6A7B8C9D0' was not found in this workspace.",
            "This approval was not found in this workspace.",
        ),
        (
            "The workspace is on hold (hold_01K9ZQ3T5VJ8W2X4Y6A7B8C9D0), set by api_key:key_01K9ZQ3T5VJ8W2X4Y6A7B8C9D0.",
            "The workspace is on hold, set by an API key.",
        ),
        (
            "approval: group:grp_01K9ZQ3T5VJ8W2X4Y6A7B8C9D0 is neither a group nor a person.",
            "Approvers: this group is neither a group nor a person.",
        ),
        ("", ""),
    ],
)
def test_a_refusal_names_the_field_as_the_form_does(refusal: str, words: str) -> None:
    assert sentence(refusal) == words


def test_every_page_says_a_refusal_so() -> None:
    pages = {path.name: path.read_text() for path in (Path(__file__).parents[2] / "api").rglob("*.html")}
    bare = [name for name, text in pages.items() if re.search(r"\{\{ *refusal *(?!\|sentence)[^}]*\}\}", text)]
    assert bare == []
    assert sum("{{ refusal|sentence }}" in text for text in pages.values()) > 30
