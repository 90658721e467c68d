"""Nobody who reads a call sees its secrets: what its schema and its names say."""

import json
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from secret_samples import FALSE_FRIENDS, KNOWN, NAMES, OBJECTS, SECRETS, TEXTS

from models.pure.canonical import canonical
from models.pure.masking import MARKER, Masked, mask, restore


@pytest.mark.parametrize("name", NAMES)
def test_a_name_that_says_secret_is_believed(name: str) -> None:
    """In any spelling, for texts and numbers; a switch is none, and a container is masked whole."""
    assert mask({name: "hunter2"}) == Masked({name: MARKER}, (f"/{name}",))
    assert mask({"a": [{name: 1234}]}).shown == {"a": [{name: MARKER}]}
    assert mask({name: ["x", {"y": "z"}]}).shown == {name: MARKER}
    assert mask({name: True}).shown == {name: True}
    assert mask({name: None}) == Masked({name: None}, ())


@pytest.mark.parametrize("name", FALSE_FRIENDS)
def test_a_name_that_only_sounds_like_it_is_not(name: str) -> None:
    """Counts, places, names of secrets: people need them."""
    assert mask({name: "hunter"}) == Masked({name: "hunter"}, ())


def test_a_working_folder_is_no_password() -> None:
    """PWD is both."""
    assert mask({"PWD": "/home/bob", "pwd": "hunter2"}).shown == {"PWD": "/home/bob", "pwd": MARKER}
    assert mask({"text": "PWD=/home/bob OLDPWD=/ Pwd=hunter2"}, None).shown["text"] == f"PWD=/home/bob OLDPWD=/ Pwd={MARKER}"


def test_pairs_and_words_of_a_command_are_read_together() -> None:
    """Environment variables and headers as pairs; a flag and the word after it."""
    given = {
        "env": [{"name": "DB_PASSWORD", "value": "hunter2"}, {"name": "HOME", "value": "/x"}],
        "argv": ["x", "--token", "abc", "-v"],
    }
    assert mask(given) == Masked(
        {
            "env": [{"name": "DB_PASSWORD", "value": MARKER}, {"name": "HOME", "value": "/x"}],
            "argv": ["x", "--token", MARKER, "-v"],
        },
        ("/argv/2", "/env/0/value"),
    )


SECRET: dict[str, Any] = {"writeOnly": True}


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"properties": {"x": SECRET}}, {"x": "s"}),
        ({"properties": {"x": {"type": "string", "format": "password"}}}, {"x": "s"}),
        ({"properties": {"x": SECRET}}, {"x": {"deep": [1]}}),
        ({"properties": {"x": SECRET}}, {"x": None}),
        ({"properties": {"y": {"properties": {"x": SECRET}}}}, {"y": {"x": "s"}}),
        ({"properties": {"y": {"items": {"properties": {"x": SECRET}}}}}, {"y": [{"x": 1}, {"x": 2}]}),
        ({"properties": {"y": {"prefixItems": [{}, {"properties": {"x": SECRET}}]}}}, {"y": [1, {"x": 2}]}),
        ({"properties": {"y": {"prefixItems": [{}], "items": {"properties": {"x": SECRET}}}}}, {"y": [1, {"x": 2}]}),
        ({"properties": {"y": {"items": [{}, {"properties": {"x": SECRET}}]}}}, {"y": [1, {"x": 2}]}),
        ({"properties": {"y": {"contains": {"properties": {"x": SECRET}}}}}, {"y": [{"x": 2}]}),
        ({"$ref": "#/$defs/a", "$defs": {"a": {"properties": {"x": {"$ref": "#/$defs/b"}}}, "b": SECRET}}, {"x": 1}),
        ({"properties": {"x": {"$ref": "#b"}}, "$defs": {"b": {"$anchor": "b"} | SECRET}}, {"x": 1}),
        ({"allOf": [{"properties": {"x": SECRET}}]}, {"x": 1}),
        ({"properties": {"x": {"anyOf": [{"type": "null"}, SECRET]}}}, {"x": 1}),
        ({"oneOf": [{"properties": {"y": {}}}, {"properties": {"x": SECRET}}]}, {"x": 1}),
        ({"if": {"properties": {"y": {"const": 1}}}, "then": {}, "else": {"properties": {"x": SECRET}}}, {"x": 1}),
        ({"if": {"properties": {"x": SECRET}}}, {"x": 1}),
        ({"then": {"properties": {"x": SECRET}}}, {"x": 1}),
        ({"dependentSchemas": {"y": {"properties": {"x": SECRET}}}}, {"x": 1, "y": 2}),
        ({"patternProperties": {"^x$": SECRET}}, {"x": 1}),
        ({"patternProperties": {"(?=x)": SECRET}}, {"x": 1}),
        ({"additionalProperties": SECRET, "properties": {"y": {}}}, {"x": 1, "y": 2}),
        ({"unevaluatedProperties": SECRET, "properties": {"y": {}}}, {"x": 1, "y": 2}),
        ({"properties": {"n": {"$ref": "#"}, "x": SECRET}}, {"n": {"n": {"x": 1}}}),
    ],
)
def test_a_schema_that_says_secret_is_believed(schema: dict[str, Any], value: dict[str, Any]) -> None:
    """Whatever the type, in any branch that could apply; nothing beside it is masked."""

    def masked(part: Any) -> Any:
        if isinstance(part, dict):
            return {name: MARKER if name == "x" else masked(item) for name, item in part.items()}
        return [masked(item) for item in part] if isinstance(part, list) else part

    found = mask(value, schema)
    assert found.shown == masked(value)
    assert found.paths
    assert all(path.endswith("/x") for path in found.paths)
    assert restore(found.shown, value, found.shown) == value


def test_a_schema_that_is_wrong_or_endless_does_no_harm() -> None:
    """It is refused elsewhere."""
    for schema in (
        {"$ref": "#", **SECRET},
        {"$ref": "http://x/y", "properties": {"x": SECRET}},
        {"properties": 1, "allOf": SECRET},
    ):
        assert mask({"y": "z"}, schema).shown["y"] in {"z", MARKER}
    assert mask({"x": 1}, {"$ref": "#/nowhere", "properties": {"x": SECRET}}).shown == {"x": MARKER}


def test_a_schema_that_takes_too_long_marks_every_argument() -> None:
    """Each level doubles the time."""
    levels = {f"a{n}": {"allOf": [{"$ref": f"#/$defs/a{n + 1}"}] * 2} for n in range(20)}
    assert mask({"x": 1, "y": "z"}, {"$ref": "#/$defs/a0", "$defs": levels | {"a20": SECRET}}).shown == {"x": MARKER, "y": MARKER}


@given(OBJECTS)
def test_masking_again_changes_nothing(value: dict[str, Any]) -> None:
    """And the first time changes nothing but what it names."""
    found = mask(value)
    assert mask(found.shown) == Masked(found.shown, ())
    assert bool(found.paths) == (found.shown != value)


def test_a_secret_that_another_one_hid_is_masked_too() -> None:
    """The first mask turns the word before it into a flag."""
    given = {"a": "Authorization: --token --token password"}
    found = mask(given)
    assert found.shown == {"a": f"Authorization: {MARKER} --token {MARKER}"}
    assert mask(found.shown).shown == found.shown
    assert restore(found.shown, given, found.shown) == given


@given(OBJECTS, SECRETS, st.sampled_from(TEXTS), st.sampled_from(NAMES))
def test_a_secret_is_in_nothing_that_is_shown(value: dict[str, Any], secret: str, text: str, name: str) -> None:
    """Beside whatever else is in the arguments, and however deep."""
    assume(secret not in json.dumps(value))
    given = {
        "rest": value,
        "b": [[{name: secret}], {name: {"c": [secret]}}],
        "d": {"e": text.format(s=secret)},
        "f": [KNOWN, value],
    }
    found = mask(given)
    spelled = json.dumps([found.shown, found.paths])
    assert secret not in spelled
    assert found.shown["f"][0] == [MARKER] * len(KNOWN)
    assert restore(found.shown, given, found.shown) == given


@given(OBJECTS)
def test_a_mask_is_no_longer_than_it_must_be(value: dict[str, Any]) -> None:
    """At most a few times the size of what it masks: nothing grows out of bounds."""
    assert len(canonical(mask(value).shown)) <= 3 * len(canonical(value)) + 20


def test_a_mask_does_not_tell_how_long_the_secret_is() -> None:
    """Nor whether it is empty."""
    assert mask({"password": ""}).shown == mask({"password": "x" * 10_000}).shown == {"password": MARKER}
