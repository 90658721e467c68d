"""Values that a schema or a name marks as secret are masked in what people see of a call."""

import json
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from secret_samples import FALSE_FRIENDS, KNOWN, NAMES, OBJECTS, SECRETS, TEXTS

from models.pure.json.canonical import canonical
from models.pure.masking import MARKER, Masked, mask, restore


def test_a_value_with_a_secret_name_is_masked() -> None:
    """In any spelling of the name. Texts, numbers and whole containers are masked, booleans and null are not."""
    for name in NAMES:
        assert mask({name: "hunter2"}) == Masked({name: MARKER}, (f"/{name}",))
        assert mask({"a": [{name: 1234}]}).arguments == {"a": [{name: MARKER}]}
        assert mask({name: ["x", {"y": "z"}]}).arguments == {name: MARKER}
        assert mask({name: True}).arguments == {name: True}
        assert mask({name: None}) == Masked({name: None}, ())


def test_a_value_with_a_similar_name_is_not_masked() -> None:
    """People need counts, places and names of secrets."""
    assert [name for name in FALSE_FRIENDS if mask({name: "hunter"}) != Masked({name: "hunter"}, ())] == []


def test_a_working_directory_in_pwd_is_not_masked() -> None:
    """PWD can also be a password."""
    assert mask({"PWD": "/home/bob", "pwd": "hunter2"}).arguments == {"PWD": "/home/bob", "pwd": MARKER}
    assert mask({"text": "PWD=/home/bob OLDPWD=/ Pwd=hunter2"}, None).arguments["text"] == f"PWD=/home/bob OLDPWD=/ Pwd={MARKER}"


def test_a_value_after_a_secret_flag_or_beside_a_secret_name_is_masked() -> None:
    arguments = {
        "env": [{"name": "DB_PASSWORD", "value": "hunter2"}, {"name": "HOME", "value": "/x"}],
        "argv": ["x", "--token", "abc", "-v"],
    }
    assert mask(arguments) == Masked(
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
def test_a_value_that_the_schema_marks_as_secret_is_masked(schema: dict[str, Any], value: dict[str, Any]) -> None:
    """Whatever its type, in any branch that could apply, and no other value."""

    def masked(part: Any) -> Any:
        if isinstance(part, dict):
            return {name: MARKER if name == "x" else masked(item) for name, item in part.items()}
        return [masked(item) for item in part] if isinstance(part, list) else part

    masked_value = mask(value, schema)
    assert masked_value.arguments == masked(value)
    assert masked_value.paths
    assert all(path.endswith("/x") for path in masked_value.paths)
    assert restore(masked_value.arguments, value, masked_value.arguments, may_see=False) == value


def test_a_malformed_or_endless_schema_does_not_fail() -> None:
    """Such a schema is refused elsewhere."""
    for schema in (
        {"$ref": "#", **SECRET},
        {"$ref": "http://x/y", "properties": {"x": SECRET}},
        {"properties": 1, "allOf": SECRET},
    ):
        assert mask({"y": "z"}, schema).arguments["y"] in {"z", MARKER}
    assert mask({"x": 1}, {"$ref": "#/nowhere", "properties": {"x": SECRET}}).arguments == {"x": MARKER}


def test_a_schema_that_takes_too_long_masks_every_argument() -> None:
    """Each level doubles the time."""
    levels = {f"a{n}": {"allOf": [{"$ref": f"#/$defs/a{n + 1}"}] * 2} for n in range(20)}
    assert mask({"x": 1, "y": "z"}, {"$ref": "#/$defs/a0", "$defs": levels | {"a20": SECRET}}).arguments == {
        "x": MARKER,
        "y": MARKER,
    }


@given(OBJECTS)
def test_masking_again_changes_nothing(value: dict[str, Any]) -> None:
    """And the first mask changes only the values at its paths."""
    masked_value = mask(value)
    assert mask(masked_value.arguments) == Masked(masked_value.arguments, ())
    assert bool(masked_value.paths) == (masked_value.arguments != value)


def test_a_secret_that_appears_only_after_another_was_masked_is_masked() -> None:
    """The first mask turns the word before it into a flag."""
    arguments = {"a": "Authorization: --token --token password"}
    masked_value = mask(arguments)
    assert masked_value.arguments == {"a": f"Authorization: {MARKER} --token {MARKER}"}
    assert mask(masked_value.arguments).arguments == masked_value.arguments
    assert restore(masked_value.arguments, arguments, masked_value.arguments, may_see=False) == arguments


@given(OBJECTS, SECRETS, st.sampled_from(TEXTS), st.sampled_from(NAMES))
def test_a_shown_value_contains_no_secret(value: dict[str, Any], secret: str, text: str, name: str) -> None:
    """Beside any other arguments, and at any depth."""
    assume(secret not in json.dumps(value))
    arguments = {
        "rest": value,
        "b": [[{name: secret}], {name: {"c": [secret]}}],
        "d": {"e": text.format(s=secret)},
        "f": [KNOWN, value],
    }
    masked_value = mask(arguments)
    spelled = json.dumps([masked_value.arguments, masked_value.paths])
    assert secret not in spelled
    assert masked_value.arguments["f"][0] == [MARKER] * len(KNOWN)
    assert restore(masked_value.arguments, arguments, masked_value.arguments, may_see=False) == arguments


@given(OBJECTS)
def test_a_masked_value_is_at_most_a_few_times_longer(value: dict[str, Any]) -> None:
    assert len(canonical(mask(value).arguments)) <= 3 * len(canonical(value)) + 20


def test_a_mask_does_not_reveal_the_length_of_a_secret() -> None:
    assert mask({"password": ""}).arguments == mask({"password": "x" * 10_000}).arguments == {"password": MARKER}
