"""A page says what is wrong with a form in the words of the form."""

import pytest

from api.desk.shell.template_language import sentence


@pytest.mark.parametrize(
    ("refusal", "words"),
    [
        ("name: String should have at least 1 character.", "Name: must not be empty."),
        ("email: must be an e-mail address.", "E-mail address: must be an e-mail address."),
        ("rule.match: has an unbalanced parenthesis.", "Calls: has an unbalanced parenthesis."),
        ("quiet_until: quiet hours need both.", "Quiet until: quiet hours need both."),
        ("agent is archived.", "Agent is archived."),
        ("The policy has changed: open the page again.", "The policy has changed: open the page again."),
        ("", ""),
    ],
)
def test_a_refusal_names_the_field_as_the_form_does(refusal: str, words: str) -> None:
    assert sentence(refusal) == words
