"""One approval with everything real, on each wire: the question, the decision, the effect, and the model's last word."""

from typing import Any

import pytest
from whole.conftest import Begin

MODELS: dict[str, Any] = {
    "claude-whole": "claude",
    "llama-whole": "open",
    "away-whole": "open",
}
"""By model: the provider that answers. The last one never answers itself."""


@pytest.mark.parametrize(("model", "provider"), MODELS.items())
def test_a_call_waits_for_a_person_and_its_result_reaches_the_model(begin: Begin, model: str, provider: str) -> None:
    talk = begin(model={"id": model, "fallbacks": ["llama-whole"]}, bash={"type": "always_ask"})
    talk.say("think about it", "say I will.", 'call bash {"command": "echo five"}', "then", "say The end.")
    talk.until("waiting")
    talk.decide(result="allow")
    talk.until("idle")
    assert "five" in str(talk.events("agent.tool_result")[0]["content"])
    assert [event["content"][0]["text"] for event in talk.events("agent.message")] == ["I will.", "The end."]
    switches = [event.body for event in talk.stage.events(talk.session_id, "model.fallback")]
    assert [switch["to"] for switch in switches] == [{"provider": "open", "model": "llama-whole"}] * 2 * (model == "away-whole")
    [spoken] = [block for block in talk.stage.history(talk.session_id)[1]["content"] if block["type"] == "tool_use"]
    assert set(spoken["provider_data"]) == {provider}
    talk.stage.check(talk.session_id)
