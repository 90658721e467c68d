"""An edit restores masked values unchanged in their own places, and nowhere else; beside a change only for who may see them."""

import json
from typing import Any

import pytest
from hypothesis import given
from secret_samples import KNOWN, OBJECTS

import api.door.parsing
from models.pure.masking import MARKER, Masked, mask, restore


@given(OBJECTS)
def test_values_without_an_edit_are_restored(value: dict[str, Any]) -> None:
    """Any JSON value, even if its fields come back in another order."""
    shown = mask(value).arguments
    travelled = json.loads(json.dumps(shown, sort_keys=True))
    for may_see in (False, True):
        assert restore(shown, value, shown, may_see=may_see) == value
        assert restore(travelled, value, travelled, may_see=may_see) == value


def test_secrets_in_names_of_fields_are_masked_and_restored() -> None:
    """Two of them get different marks, which do not depend on the order of the fields."""
    arguments = {"tokens": {KNOWN[3]: "a", KNOWN[4]: "b"}}
    masked_value = mask(arguments)
    assert masked_value == Masked({"tokens": {MARKER: "a", f"{MARKER} (2)": "b"}}, (f"/tokens/{MARKER}", f"/tokens/{MARKER} (2)"))
    turned = {"tokens": dict(reversed(arguments["tokens"].items()))}
    assert mask(turned).arguments == masked_value.arguments
    assert restore({"tokens": {f"{MARKER} (2)": "c"}}, arguments, masked_value.arguments, may_see=True) == {
        "tokens": {KNOWN[4]: "c"}
    }
    assert mask({"~/": {"password": 1}}).paths == ("/~0~1/password",)


SHOWN_FROM: dict[str, Any] = {
    "command": "curl -u bob:hunter2 -H 'Authorization: Bearer abc123' https://x",
    "password": "hunter2",
    "pin": {"otp": 1234},
    "list": ["ghp_" + "a1B2" * 9, "plain", {"token": "t1", "to": "a"}, {"token": "t2", "to": "b"}],
}


def _edited(*edits: tuple[str, Any]) -> dict[str, Any]:
    edited = mask(SHOWN_FROM).arguments
    for path, value in edits:
        *way, last = path.split("/")
        place: Any = edited
        for part in way:
            place = place[int(part) if isinstance(place, list) else part]
        place[int(last) if isinstance(place, list) else last] = value
    return edited


def test_who_may_see_a_secret_may_edit_beside_it() -> None:
    """Other fields, new fields, or a new secret."""
    edited = _edited(("password", "mine"), ("new", ["x"]))
    restored = restore(edited, SHOWN_FROM, mask(SHOWN_FROM).arguments, may_see=True)
    assert restored == SHOWN_FROM | {"password": "mine", "new": ["x"]}


@pytest.mark.parametrize(
    ("edits", "pointer"),
    [
        ([("url", "https://evil.example")], "/url"),
        ([("note", 2)], "/note"),
        ([("note", 1.5)], "/note"),
        ([("headers", {"authorization": f"Bearer {MARKER}", "host": "evil.example"})], "/headers/host"),
        ([("headers", {"authorization": "Bearer mine"})], "/headers/authorization"),
        ([("new", None)], "/new"),
        ([("url", "https://evil.example"), ("password", "mine")], "/url"),
    ],
)
def test_who_may_not_see_a_secret_changes_nothing_beside_its_marker(edits: list[tuple[str, Any]], pointer: str) -> None:
    """Neither another field nor another masked value: both may say where the secret goes."""
    header = {"authorization": "Bearer abcdefghijklmnop1234"}
    arguments = {"url": "https://good.example", "password": "hunter2", "headers": header, "note": 1}
    shown = mask(arguments).arguments
    with pytest.raises(ValueError, match=rf"^{pointer}: .* type the value that is meant, or ask somebody .* `reveal`\.$"):
        restore(shown | dict(edits), arguments, shown, may_see=False)
    typed = {"url": "https://evil.example", "password": "mine", "headers": {}, "note": 2}
    assert restore(typed, arguments, shown, may_see=False) == typed


def test_a_field_with_a_marker_cannot_lose_its_neighbour() -> None:
    arguments = {"password": "hunter2", "host": "good.example"}
    with pytest.raises(ValueError, match=r"^/host: is not as it was shown"):
        restore({"password": MARKER}, arguments, mask(arguments).arguments, may_see=False)


SHOWN = "curl -u bob:«masked» -H 'Authorization: Bearer «masked»' https://x"


@pytest.mark.parametrize(
    "command",
    [
        SHOWN.replace("x", "y"),
        SHOWN.replace("curl", "echo"),
        SHOWN + "; echo $?",
        "set -x; " + SHOWN,
        SHOWN + " «masked»",
        SHOWN.replace("bob:«masked»", "bob:mine"),
        f"echo {MARKER} {MARKER}",
        MARKER,
    ],
)
def test_a_text_with_a_marker_cannot_be_edited(command: str) -> None:
    """The text around the marker decides where the secret goes."""
    with pytest.raises(ValueError, match=r"^/command: .* type the value that is meant, or ask somebody .* `reveal`\.$"):
        restore(_edited(("command", command)), SHOWN_FROM, mask(SHOWN_FROM).arguments, may_see=True)


@pytest.mark.parametrize(
    ("arguments", "edited"),
    [
        ({"argv": ["curl", "--password", "hunter2"]}, {"argv": ["echo", "--password", MARKER]}),
        ({"argv": ["curl", "--password", "hunter2"]}, {"argv": ["curl", "--user", MARKER]}),
        ({"argv": ["curl", "--password", "hunter2"]}, {"argv": ["curl", "--password", MARKER, "-v"]}),
        ({"env": [{"name": "TOKEN", "value": "hunter2"}]}, {"env": [{"name": "PS1", "value": MARKER}]}),
        ({"env": [{"key": "TOKEN", "value": "hunter2"}]}, {"env": [{"value": MARKER}]}),
    ],
)
def test_a_list_with_a_marker_cannot_be_edited(arguments: dict[str, Any], edited: dict[str, Any]) -> None:
    shown = mask(arguments).arguments
    with pytest.raises(ValueError, match="is not as it was shown"):
        restore(edited, arguments, shown, may_see=True)


@pytest.mark.parametrize(
    ("path", "value", "pointer"),
    [
        ("new", MARKER, "/new"),
        ("new", {"deep": [MARKER]}, "/new"),
        ("list/1", MARKER, "/list/1"),
        ("list/1", {"a": f"x {MARKER}"}, "/list/1"),
        ("command", f"echo {MARKER}", "/command"),
        ("command", MARKER * 3, "/command"),
        ("password", f"{MARKER}{MARKER}", "/password"),
        ("password", [MARKER], "/password"),
        ("pin/otp", f"0{MARKER}", "/pin/otp"),
        ("list", [MARKER], "/list"),
        ("list/2", {"token": MARKER, "to": "b"}, "/list/2/to"),
        (f"{MARKER}", 1, f"/{MARKER}"),
        ("a~/b", MARKER, "/a~0"),
    ],
)
def test_a_marker_anywhere_else_is_refused(path: str, value: Any, pointer: str) -> None:
    """Copied, moved, added or doubled. The error names the place and the remedy, and contains no secret."""
    edited = _edited((path, value)) if path != "a~/b" else _edited() | {"a~/b": value}
    with pytest.raises(
        ValueError, match=r"type the value that is meant, or ask somebody whose key has the scope `reveal`\.$"
    ) as refused:
        restore(edited, SHOWN_FROM, mask(SHOWN_FROM).arguments, may_see=True)
    assert str(refused.value).startswith(pointer)
    assert "hunter2" not in str(refused.value)
    assert refused.value.__cause__ is None


def test_an_edit_may_remove_masked_values() -> None:
    shown = mask(SHOWN_FROM).arguments
    assert restore({"command": "ls", "list": []}, SHOWN_FROM, shown, may_see=False) == {"command": "ls", "list": []}


def test_deep_and_wide_values_are_masked_and_restored() -> None:
    """Up to the depth limit of a request's input."""
    deep: Any = {"password": "x"}
    for _ in range(api.door.parsing.DEPTH):
        deep = [deep]
    arguments = {"a": deep, "b": ["plain"] * 10_000 + ["password=x"]}
    masked_value = mask(arguments)
    assert masked_value.paths == ("/a" + "/0" * api.door.parsing.DEPTH + "/password", "/b/10000")
    restored = restore(masked_value.arguments, arguments, masked_value.arguments, may_see=True)
    assert restored["b"] == arguments["b"]
    inner: Any = restored["a"]
    while isinstance(inner, list):
        inner = inner[0]
    assert inner == {"password": "x"}
