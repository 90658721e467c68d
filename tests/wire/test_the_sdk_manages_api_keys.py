"""The strict SDK's `beta.organization.api_keys` lists keys in pages, reads, renames, switches off and archives them."""

import anthropic
import pytest
from anthropic import Anthropic
from rows.stage import Stage

from models.database.transactions import transaction
from models.workspace.api_key import ApiKey, NewKey


def create(stage: Stage, *names: str) -> list[str]:
    """Create keys with these names. Returns their ids."""
    ids = []
    for name in names:
        with transaction(stage.workspace_id) as db:
            ids.append(ApiKey.create(db, NewKey(name))[0].id)
    return ids


def test_it_lists_them_in_pages_newest_first_and_both_ways(sdk: Anthropic, stage: Stage) -> None:
    create(stage, *"abcde")
    keys = sdk.beta.organization.api_keys
    everything = [key.id for key in keys.list(limit=1000)]
    assert len(everything) == 6, "the client's own key too"
    assert everything == sorted(everything, reverse=True)
    first = keys.list(limit=2)
    assert ([key.id for key in first.data], first.has_more) == (everything[:2], True)
    assert [key.id for key in first] == everything, "the client requests the other pages by itself"
    before = keys.list(limit=2, before_id=everything[4])
    assert ([key.id for key in before.data], before.has_more) == (everything[2:4], True)
    assert [key.id for key in keys.list(limit=3, before_id=everything[2]).data] == everything[:2]
    assert keys.list(after_id=everything[-1]).data == []


def test_it_finds_them_by_status_and_workspace(sdk: Anthropic, stage: Stage) -> None:
    [mine] = sdk.beta.organization.api_keys.list()
    [off, gone] = create(stage, "off", "gone")
    keys = sdk.beta.organization.api_keys
    assert keys.update(off, status="inactive").status == "inactive"
    assert keys.update(gone, status="archived").status == "archived"
    found = {status: [key.id for key in keys.list(status=status)] for status in ("active", "inactive", "archived", "expired")}
    assert found == {"active": [mine.id], "inactive": [off], "archived": [gone], "expired": []}
    assert len(list(keys.list(workspace_id=stage.workspace_id))) == 3
    assert keys.list(workspace_id="wrkspc_other").data == []
    assert keys.list(created_by_user_id="user_1").data == []


def test_it_reads_and_changes_one(sdk: Anthropic, stage: Stage) -> None:
    [key_id] = create(stage, "before")
    keys = sdk.beta.organization.api_keys
    renamed = keys.update(key_id, name="after")
    assert (renamed.name, renamed.status, renamed.scope.type) == ("after", "active", "workspace")
    assert keys.retrieve(key_id) == renamed
    assert renamed.partial_key_hint
    assert renamed.partial_key_hint.startswith("sk-assent-...")
    assert keys.update(key_id, status="inactive").status == "inactive"
    assert keys.update(key_id, status="active").status == "active"
    assert keys.update(key_id, status="archived").status == "archived"
    with pytest.raises(anthropic.BadRequestError, match="create another one"):
        keys.update(key_id, status="active")
    with pytest.raises(anthropic.NotFoundError):
        keys.retrieve("key_none")
