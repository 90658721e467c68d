"""Pages show a value completely: in diffs, trees, highlighted code, forms and times."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from werkzeug.datastructures import MultiDict

from api.desk.rendering import diff, fields, highlight
from api.desk.rendering.diff import changed_fields
from api.desk.rendering.evidence import evidence
from api.desk.rendering.tree import tree
from models.pure.text.line_diff import MOST_LINES, hunks
from models.pure.text.relative_time import ago, time_left
from models.pure.text.visible import visible_lines

NOW = datetime(2026, 11, 23, 12, tzinfo=UTC)
SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "count": {"type": "integer"},
        "urgent": {"type": "boolean"},
        "size": {"enum": ["small", 1, True]},
        "tags": {"type": "array", "items": {"enum": ["a", "b"]}},
        "options": {"type": "object"},
    },
    "required": ["name"],
}


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "just now"),
        (9, "9 seconds ago"),
        (60, "1 minute ago"),
        (31 * 60, "31 minutes ago"),
        (7200, "2 hours ago"),
        (90_000, "1 day ago"),
    ],
)
def test_a_past_moment_is_shown_as_its_age(seconds: int, words: str) -> None:
    assert ago(NOW - timedelta(seconds=seconds), NOW) == words


@pytest.mark.parametrize(
    ("seconds", "words"), [(-1, "overdue"), (59, "59 seconds left"), (86_399, "23 hours left"), (172_800, "2 days left")]
)
def test_a_deadline_is_shown_as_the_time_left(seconds: int, words: str) -> None:
    assert time_left(NOW + timedelta(seconds=seconds), NOW) == words


def applied(before: str, after: str) -> str:
    """Apply the hunks to `before`."""
    old = before.split("\n")
    new: list[str] = []
    at = 0
    for hunk in hunks(before, after)[0]:
        new += old[at : hunk["old"] - 1]
        at = hunk["old"] - 1
        for line in hunk["lines"]:
            text = line[1:].removesuffix("\\ No newline at end of file")
            new += [text] if line[0] in " +" else []
            at += line[0] in " -"
    return "\n".join(new + old[at:])


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("a\nb\nc\n", "a\nB\nc\n"),
        ("", "a\n"),
        ("a\n", ""),
        ("\n".join(map(str, range(100))), "\n".join(map(str, [*range(40), "x", *range(42, 90), "y", *range(90, 100)]))),
        ("same\n", "same\n"),
        ("a\r\nb\r\n", "a\r\nB\r\n"),
    ],
)
def test_a_diff_applied_to_the_old_text_gives_the_new_one(before: str, after: str) -> None:
    assert applied(before, after).rstrip("\n") == after.rstrip("\n")


def test_a_diff_has_the_file_s_line_numbers_and_counts_skipped_lines() -> None:
    changes, left_out = hunks(
        "\n".join(map(str, range(1, 101))), "\n".join([*map(str, range(1, 50)), "new", *map(str, range(50, 101))])
    )
    rows = list(diff.rows(changes))
    assert left_out == 0
    assert rows[0].text == "46 unchanged lines"
    assert [(row.old, row.new, row.kind, row.text) for row in rows[1:6]] == [
        (47, 47, "same", "47"),
        (48, 48, "same", "48"),
        (49, 49, "same", "49"),
        (None, 50, "add", "new"),
        (50, 51, "same", "50"),
    ]


def test_a_diff_beyond_the_limit_counts_the_lines_left_out() -> None:
    changes, left_out = hunks("", "x\n" * (MOST_LINES + 7))
    assert (sum(len(hunk["lines"]) for hunk in changes), left_out) == (MOST_LINES, 7)


@pytest.mark.parametrize("text", ["ls -l | grep 'a b' # x", "echo \u202eabc\r\n\tdone", "if then ((", "x" * 30_000, ""])
def test_highlighting_changes_no_character(text: str) -> None:
    assert "".join(piece for _, piece in highlight.command(text)) == visible_lines(text)
    assert "".join(piece for _, piece in highlight.code(text, "a.py")) == visible_lines(text)


def test_a_version_in_a_command_is_not_half_a_number() -> None:
    pieces = list(highlight.command("git tag 2.8.1 && pip install x==2.8.1 && sleep 2"))
    assert [piece for css, piece in pieces if css == "m"] == ["2"]
    assert pieces[-1] == ("m", "2")


def test_a_tree_has_every_value_and_quotes_texts_that_look_like_other_types() -> None:
    root = tree({"a\u202eb": [1, "1", True, "true", '"', '"1"', "", " ", None, {}], "text": "two\nlines"})
    items = root.children[0]
    assert items.name == "a<U+202E>b"
    assert [(node.kind, node.text) for node in items.children] == [
        ("number", "1"),
        ("text", '"1"'),
        ("boolean", "true"),
        ("text", '"true"'),
        ("text", '"'),
        ("text", '"\\"1\\""'),
        ("text", '""'),
        ("text", '" "'),
        ("null", "null"),
        ("object", ""),
    ]
    assert root.children[1].is_block


def filled(values: dict[str, Any], *submitted: tuple[str, str]) -> fields.Filled:
    """A form with these initial values, submitted with these controls."""
    return fields.read(MultiDict([(f"f.{name}", text) for name, text in submitted]), fields.fields(SCHEMA, values, "f"))


def test_a_form_gives_each_value_with_its_type() -> None:
    form = filled(
        {},
        ("name", "Anna"),
        ("count", "3"),
        ("urgent", "1"),
        ("size", "2"),
        ("tags", "0"),
        ("tags", "1"),
        ("options", '{"x": 1.5}'),
    )
    assert not form.faults
    expected = {"name": "Anna", "count": 3, "urgent": False, "size": True, "tags": ["a", "b"], "options": {"x": 1.5}}
    assert form.values == expected
    assert [type(value) for value in form.values.values()] == [type(value) for value in expected.values()]


def test_an_unchanged_form_gives_its_initial_values() -> None:
    values = {
        "name": "a\r\nb\r\nc",
        "count": 5,
        "urgent": True,
        "tags": [],
        "options": {"deep": [1]},
        "unknown": "\u202e",
        "empty": "",
    }
    into = fields.fields(SCHEMA, values, "f")
    # As a browser submits it: every line end as CR LF.
    form = [
        (one.control, one.text.replace("\r\n", "\n").replace("\n", "\r\n")) for one in into if one.kind not in {"choice", "choices"}
    ]
    assert fields.read(MultiDict([*form, ("f.urgent", "0")]), into).values == values


@pytest.mark.parametrize(
    ("name", "text", "fault"),
    [
        ("name", "", "is needed"),
        ("count", "soon", "a whole number"),
        ("count", "1.5", "a whole number"),
        ("count", "true", "a whole number"),
        ("size", "9", "one of these"),
        ("size", "small", "one of these"),
        ("size", "0000009", "one of these"),
        ("size", "\u0660\u0660\u0660\u0660\u0660\u0660\u0669", "one of these"),
        ("options", '{"n": NaN}', "no NaN"),
        ("options", '{"n": 1e999}', "too large"),
        ("options", "[" * 100_000, "at most 50000 values"),
        ("options", "[" * 900 + "]" * 900, "nested deeper than 64 levels"),
        ("options", '{"n": 1, "n": 2}', "appears twice"),
        ("options", '{"n": "\\u0000"}', "NUL"),
        ("options", '{"n": "\\ud800"}', "surrogate"),
        ("options", '{"n": 1000000000000000000000}', "send it as a string"),
        ("count", "9" * 5000, "a whole number"),
    ],
)
def test_a_field_names_its_fault(name: str, text: str, fault: str) -> None:
    form = filled({}, ("name", "Anna"), (name, text)) if name != "name" else filled({}, (name, text))
    assert fault in form.faults.get(f"f.{name}", "")
    assert bool(form.faults) == bool(fault)


def test_evidence_of_an_edit_is_the_change_with_or_without_the_file() -> None:
    arguments = {"file_path": "a.py", "old_string": "x = 1", "new_string": "x = 2", "replace_all": True}
    without = evidence("edit", arguments, None)
    assert [(row.kind, row.text) for row in without.rows if row.kind != "same"] == [
        ("del", "x = 1\\ No newline at end of file"),
        ("add", "x = 2\\ No newline at end of file"),
    ]
    assert "No tools worker has looked" in without.note
    assert without.rest
    assert without.rest.children[0].name == "replace_all"
    changes, left_out = hunks("a\nx = 1\n", "a\nx = 2\n")
    seen = evidence("edit", arguments, {"hunks": changes, "left_out": left_out})
    assert [(row.old, row.new, row.text) for row in seen.rows] == [(1, 1, "a"), (2, None, "x = 1"), (None, 2, "x = 2")]
    assert "does not occur" in evidence("edit", arguments, {"problem": "a.py: old_string does not occur in it"}).note


def test_arguments_of_another_shape_are_a_tree() -> None:
    for arguments in ({"command": 5}, {"command": None, "restart": True}, {}):
        shown = evidence("bash", arguments, None)
        assert shown.rest == tree(arguments)
        assert not shown.pieces


ORDERS = {"type": "object", "required": ["b"], "properties": {"a": {"title": "First"}, "b": {"title": "B"}}}


def test_a_tree_has_the_order_and_the_titles_of_the_schema_and_hides_no_name() -> None:
    node = tree({"x": 1, "a": 2, "b": 3}, schema=ORDERS)
    assert [(child.name, child.title) for child in node.children] == [("a", "First"), ("b", ""), ("x", "")]
    assert [child.name for child in tree({"sku": 1, "cents": 2}).children] == ["cents", "sku"], "as rows do not keep the order"


def test_empty_arguments_share_a_line_and_are_all_there() -> None:
    node = tree({"a": "", "b": None, "c": [], "d": {}, "e": 0, "f": False, "g": " "})
    assert [child.name for child in node.fields] == ["e", "f", "g"]
    assert [(child.name, child.empty_text) for child in node.empty_fields] == [("a", '""'), ("b", "null"), ("c", "[]"), ("d", "{}")]


@pytest.mark.parametrize(
    ("value", "columns"),
    [
        ([{"name": "A", "value": "1"}, {"name": "B", "value": "2"}], ("name", "value")),
        ([{"name": "A", "value": "1"}, {"name": "B"}], ()),
        ([{"name": "A", "value": "1"}, {"name": "B", "value": "x\ny"}], ()),
        ([{"name": "A", "value": "1"}, 5], ()),
        ([{"name": "A", "value": "1"}], ()),
    ],
)
def test_objects_with_the_same_short_fields_are_a_table(value: Any, columns: tuple[str, ...]) -> None:
    assert tree(value).columns == columns


def test_a_change_of_arguments_shows_each_changed_one_by_lines() -> None:
    before, after = {"command": "a\nb", "same": 1, "old": True}, {"command": "a\nc", "same": 1, "new": {"x": 1}}
    changes = {
        part.name: [(row.kind, row.text) for row in part.rows if row.kind in {"add", "del"}]
        for part in changed_fields(before, after)
    }
    assert changes["command"] == [("del", "b"), ("add", "c")]
    assert ("del", "true") in changes["old"]
    assert ("add", '  "x": 1') in changes["new"]
    assert "same" not in changes
