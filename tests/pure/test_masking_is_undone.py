"""An edit restores masked values unchanged in their own places, and nowhere else."""

import json
from typing import Any

import pytest
from hypothesis import given
from secret_samples import KNOWN, OBJECTS

import api.parsing
from models.pure.masking import MARKER, Masked, mask, restore


@given(OBJECTS)
def test_values_without_an_edit_are_restored(value: dict[str, Any]) -> None:
    """Any JSON value, even if its fields come back in another order."""
    shown = mask(value).shown
    assert restore(shown, value, shown) == value
    travelled = json.loads(json.dumps(shown, sort_keys=True))
    assert restore(travelled, value, travelled) == value


def test_secrets_in_names_of_fields_are_masked_and_restored() -> None:
    """Two of them get different marks, which do not depend on the order of the fields."""
    arguments = {"tokens": {KNOWN[3]: "a", KNOWN[4]: "b"}}
    masked_value = mask(arguments)
    assert masked_value == Masked({"tokens": {MARKER: "a", f"{MARKER} (2)": "b"}}, (f"/tokens/{MARKER}", f"/tokens/{MARKER} (2)"))
    turned = {"tokens": dict(reversed(arguments["tokens"].items()))}
    assert mask(turned).shown == masked_value.shown
    assert restore({"tokens": {f"{MARKER} (2)": "c"}}, arguments, masked_value.shown) == {"tokens": {KNOWN[4]: "c"}}
    assert mask({"~/": {"password": 1}}).paths == ("/~0~1/password",)


SHOWN_FROM: dict[str, Any] = {
    "command": "curl -u bob:hunter2 -H 'Authorization: Bearer abc123' https://x",
    "password": "hunter2",
    "pin": {"otp": 1234},
    "list": ["ghp_" + "a1B2" * 9, "plain", {"token": "t1", "to": "a"}, {"token": "t2", "to": "b"}],
}


def _edited(*edits: tuple[str, Any]) -> dict[str, Any]:
    edited = mask(SHOWN_FROM).shown
    for path, value in edits:
        *way, last = path.split("/")
        place: Any = edited
        for part in way:
            place = place[int(part) if isinstance(place, list) else part]
        place[int(last) if isinstance(place, list) else last] = value
    return edited


def test_edits_beside_a_secret_are_kept() -> None:
    """Other fields, new fields, other objects of a list, or a new secret."""
    edited = _edited(("password", "mine"), ("list/2/to", "c"), ("new", ["x"]))
    restored = restore(edited, SHOWN_FROM, mask(SHOWN_FROM).shown)
    assert restored["command"] == SHOWN_FROM["command"]
    assert restored["password"] == "mine"
    assert restored["pin"] == {"otp": 1234}
    assert restored["list"] == [SHOWN_FROM["list"][0], "plain", {"token": "t1", "to": "c"}, {"token": "t2", "to": "b"}]
    assert restored["new"] == ["x"]


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
        restore(_edited(("command", command)), SHOWN_FROM, mask(SHOWN_FROM).shown)


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
def test_the_name_or_flag_beside_a_marker_cannot_be_edited(arguments: dict[str, Any], edited: dict[str, Any]) -> None:
    shown = mask(arguments).shown
    assert restore(shown, arguments, shown) == arguments
    with pytest.raises(ValueError, match=r"beside the marker|where none was shown"):
        restore(edited, arguments, shown)


@pytest.mark.parametrize(
    ("path", "value", "pointer"),
    [
        ("new", MARKER, "/new"),
        ("new", {"deep": [MARKER]}, "/new/deep/0"),
        ("list/1", MARKER, "/list/0"),
        ("list/1", {"a": f"x {MARKER}"}, "/list/0"),
        ("command", f"echo {MARKER}", "/command"),
        ("command", MARKER * 3, "/command"),
        ("password", f"{MARKER}{MARKER}", "/password"),
        ("password", [MARKER], "/password/0"),
        ("pin/otp", f"0{MARKER}", "/pin/otp"),
        ("list", [MARKER], "/list/0"),
        ("list/2", {"token": MARKER, "to": "b"}, "/list/2"),
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
        restore(edited, SHOWN_FROM, mask(SHOWN_FROM).shown)
    assert str(refused.value).startswith(pointer)
    assert "hunter2" not in str(refused.value)
    assert refused.value.__cause__ is None


def test_an_edit_may_remove_masked_values() -> None:
    shown = mask(SHOWN_FROM).shown
    assert restore({"command": "ls", "list": []}, SHOWN_FROM, shown) == {"command": "ls", "list": []}


def test_deep_and_wide_values_are_masked_and_restored() -> None:
    """Up to the depth limit of a request's input."""
    deep: Any = {"password": "x"}
    for _ in range(api.parsing.DEPTH):
        deep = [deep]
    arguments = {"a": deep, "b": ["plain"] * 10_000 + ["password=x"]}
    masked_value = mask(arguments)
    assert masked_value.paths == ("/a" + "/0" * api.parsing.DEPTH + "/password", "/b/10000")
    restored = restore(masked_value.shown, arguments, masked_value.shown)
    assert restored["b"] == arguments["b"]
    inner: Any = restored["a"]
    while isinstance(inner, list):
        inner = inner[0]
    assert inner == {"password": "x"}
