"""`assent provider-keys` stores, lists and deletes a workspace's keys of model providers, by the API."""

import json

from local.conftest import Assent


def test_a_provider_s_key_is_stored_listed_and_deleted(assent: Assent) -> None:
    key_id = assent("provider-keys", "set", "anthropic", typed="sk-workspace-0123456789\n").strip()
    [row] = json.loads(assent("provider-keys", "list", "--json"))
    assert (row["id"], row["provider"], row["hint"]) == (key_id, "anthropic", "6789")
    assert "the key “test”" in assent("provider-keys", "list")
    assert assent("provider-keys", "delete", key_id) == f"{key_id} is deleted.\n"
    assert json.loads(assent("provider-keys", "list", "--json")) == []
    assert "provider: " in assent("provider-keys", "set", "nobody", typed="k\n", code=1)
