"""`GET /v1/models` lists the agents, in the form of the SDK that asks."""

import openai
from anthropic import Anthropic
from doors.served import MODEL


def test_each_sdk_reads_the_list(sdk: Anthropic, api: str) -> None:
    ids = [sdk.beta.agents.create(name=f"Agent {number}", model=MODEL).id for number in range(3)]
    newest_first = [f"assent/{id_}" for id_ in reversed(ids)]
    page = sdk.models.list(limit=2)
    assert ([model.id for model in page.data], page.has_more) == (newest_first[:2], True)
    assert page.data[0].display_name == "Agent 2"
    assert [model.id for model in sdk.models.list(limit=2)] == newest_first, "the cursor leads to the next page"
    assert list(sdk.models.list(lifecycle=["retired"])) == []
    with openai.OpenAI(api_key=sdk.api_key or "", base_url=f"{api}/v1", _strict_response_validation=True) as client:
        assert [model.id for model in client.models.list()] == newest_first
