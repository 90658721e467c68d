"""A server that asks ends the attempt with its question; the call comes again with the answers. Nothing waits meanwhile."""

import json

import pytest
from mcp_servers.conftest import Caller, text

from workers.tools.kinds import Answers


@pytest.fixture(params=["piped", "modern"])
def asking(request: pytest.FixtureRequest) -> Caller:
    caller: Caller = request.getfixturevalue(request.param)
    return caller


def test_a_question_has_a_form_and_a_page(asking: Caller) -> None:
    result = asking.call("ask")
    assert result.content == []
    assert result.question is not None
    assert result.question.requests == {
        "form": {
            "message": "Which colour?",
            "schema": {"type": "object", "properties": {"colour": {"type": "string"}}, "required": ["colour"]},
        },
        "page": {"message": "Pay here.", "url": "https://pay.example/1"},
    }


def test_the_answers_reach_the_server_with_its_state(asking: Caller) -> None:
    question = asking.call("ask").question
    assert question is not None
    answers = {"form": {"action": "accept", "content": {"colour": "red"}}, "page": {"action": "decline"}}
    result = asking.answer("ask", Answers(answers, question.state))
    assert json.loads(text(result)) == {"said": answers, "state": "asked once"}


def test_a_server_that_asks_nothing_but_another_call_gets_the_call(asking: Caller) -> None:
    assert text(asking.call("again")) == "..."


def test_a_request_for_sampling_ends_the_call(asking: Caller) -> None:
    result = asking.call("sample")
    assert result.is_error
    assert "sampling/createMessage, which is not offered" in text(result)


def test_before_the_version_that_can_wait_a_server_is_told_that_nobody_takes_questions(legacy: Caller) -> None:
    assert text(legacy.call("ask")) == "asks nothing: None"


def test_answers_that_have_no_place_any_more_end_the_call(legacy: Caller) -> None:
    result = legacy.answer("ask", Answers({"form": {"action": "decline"}}, "state"))
    assert result.is_error
    assert "cannot be answered any more" in text(result)
