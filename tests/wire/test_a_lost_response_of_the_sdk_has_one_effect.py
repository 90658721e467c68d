"""The SDK sends a request again whose response was lost. Each has one effect, and the retry gets the response."""

from typing import Any

from anthropic import Anthropic, DefaultHttpxClient
from crashes.likeness import masked, rows
from doors.served import MODEL, key
from httpx2 import HTTPTransport, Request, Response
from rows.stage import Stage, call

GO: Any = {"type": "user.message", "content": [{"type": "text", "text": "Go."}]}
LATER = {"retry-after-ms": "1"}
"""The SDK sends a request again after this time."""


class Loses(HTTPTransport):
    """The way to the server, on which the response to the first try of each writing request is lost: a proxy answers with a 502."""

    def __init__(self) -> None:
        super().__init__()
        self.lost: list[str] = []

    def handle_request(self, request: Request) -> Response:
        """Send the request. Returns the server's response, or the proxy's."""
        response = super().handle_request(request)
        if request.method == "GET" or request.headers["x-stainless-retry-count"] != "0":
            return response
        response.read()
        response.close()
        assert response.status_code == 200, response.text
        self.lost.append(f"{request.method} {request.url.path}")
        return Response(502, headers=LATER, request=request)


def use(sdk: Anthropic, stage: Stage) -> None:
    """Send each kind of request that the SDK can send, once."""
    beta = sdk.beta
    tools: Any = [{"type": "agent_toolset_20260401"}]
    agent = beta.agents.create(name="A", model=MODEL, tools=tools)
    beta.agents.update(agent.id, name="B", version=1)
    environment = beta.environments.create(name="E", config={"type": "cloud"})
    beta.environments.update(environment.id, name="F")
    session = beta.sessions.create(agent=agent.id, environment_id=environment.id)
    beta.sessions.update(session.id, title="T")
    beta.sessions.events.send(session.id, events=[GO])
    [asked] = stage.reply(session.id, call())
    beta.sessions.events.send(session.id, events=[{"type": "user.tool_confirmation", "tool_use_id": asked.id, "result": "deny"}])
    stage.reply(session.id)
    beta.sessions.archive(session.id)
    beta.sessions.delete(session.id)
    spare = beta.sessions.create(agent=agent.id, environment_id=environment.id, title="S")
    [thread] = beta.sessions.threads.list(spare.id)
    beta.sessions.threads.archive(thread.id, session_id=spare.id)
    beta.environments.archive(environment.id)
    beta.agents.archive(agent.id)
    manage(sdk, stage)


def manage(sdk: Anthropic, stage: Stage) -> None:
    """Send the requests about the organization."""
    ours = sdk.beta.organization
    invite = ours.invites.create(email="ben@example.com", role="user")
    ours.invites.delete(invite.id)
    group = ours.rbac_groups.create(name="finance")
    ours.rbac_groups.update(group.id, name="legal")
    ours.rbac_groups.delete(group.id)
    webhook = ours.webhooks.create(url="https://example.com/hook", name="Mine", enabled_events=["session.created"])
    ours.webhooks.update(webhook.id, enabled_events=["session.archived"])
    ours.webhooks.regenerate_signing_secret(webhook.id)
    ours.webhooks.delete(webhook.id)
    limit = ours.spend_limits.set(amount="500", scope={"type": "workspace", "workspace_id": stage.workspace_id})
    ours.spend_limits.delete(limit.id)


def test_each_writing_request_whose_response_is_lost_has_one_effect(api: str, stage: Stage) -> None:
    """In the end the rows are like those of a workspace whose client lost none."""
    peaceful, loses = Stage(), Loses()
    with Anthropic(api_key=key(peaceful), base_url=api, max_retries=0) as sdk:
        use(sdk, peaceful)
    with Anthropic(api_key=key(stage), base_url=api, http_client=DefaultHttpxClient(transport=loses)) as sdk:
        use(sdk, stage)
    assert len(loses.lost) == 25
    assert sorted(map(masked, rows(stage.workspace_id))) == sorted(map(masked, rows(peaceful.workspace_id)))
