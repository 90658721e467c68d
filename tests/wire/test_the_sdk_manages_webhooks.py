"""The SDK's `beta.organization.webhooks` manages the workspace's endpoints, which `/v1/webhooks` has too."""

import httpx2
from anthropic import Anthropic
from doors.served import key
from rows.stage import Stage

URL = "https://example.com/hook"


def test_the_sdk_makes_changes_and_deletes_an_endpoint(api: str, stage: Stage) -> None:
    """Not in the strict mode, whose types know the events of an organization and not those of a workspace."""
    secret = key(stage)
    webhooks = Anthropic(api_key=secret, base_url=api, max_retries=0).beta.organization.webhooks
    new = webhooks.create(url=URL, name="Mine", enabled_events=["session.created"])
    assert new.signing_secret
    assert [one.id for one in webhooks.list()] == [new.id]
    changed = webhooks.update(new.id, enabled_events=["session.archived"])
    assert changed.enabled_events == ["session.archived"]
    assert webhooks.retrieve(new.id) == changed
    assert webhooks.regenerate_signing_secret(new.id).signing_secret != new.signing_secret
    ours = httpx2.get(f"{api}/v1/webhooks/{new.id}", headers={"x-api-key": secret}).json()
    assert ours["url"] == URL
    assert webhooks.delete(new.id).id == new.id
    assert list(webhooks.list()) == []
