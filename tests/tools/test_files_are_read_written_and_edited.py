"""`read`, `write` and `edit` do what they say, wholly or not at all."""

import os
from concurrent.futures import ThreadPoolExecutor

import pytest
from looking import text

from workers.tools.builtin import write


def test_read_gives_the_exact_text(call, files):
    (files / "a").write_bytes("é\n\tx  \n".encode())
    assert text(call("read", file_path="a")) == "é\n\tx  \n"


@pytest.mark.parametrize(
    ("view_range", "expected"),
    [([1, 1], "1\n"), ([2, 3], "2\n3\n"), ([3, 99], "3\n4"), ([2, 0], "2\n3\n4"), ([0, 2], "1\n2\n"), ([4, -1], "4")],
)
def test_view_range_counts_from_one_and_includes_both_ends(call, files, view_range, expected):
    (files / "a").write_text("1\n2\n3\n4")
    assert text(call("read", file_path="a", view_range=view_range)) == expected


@pytest.mark.parametrize(("view_range", "says"), [([5, 9], "only 4 lines"), ([3, 2], "end is before the start")])
def test_a_view_range_outside_the_file_is_an_error(call, files, view_range, says):
    (files / "a").write_text("1\n2\n3\n4\n")
    assert says in text(call("read", file_path="a", view_range=view_range))


def test_a_large_file_is_read_in_parts_only(call, files):
    (files / "a").write_text("0123456789\n" * 1_000_000)
    assert "view_range" in text(call("read", file_path="a"))
    assert "view_range" in text(call("read", file_path="a", view_range=[1, 0]))
    assert text(call("read", file_path="a", view_range=[999_999, 999_999])) == "0123456789\n"


def test_one_endless_line_is_refused(call, files):
    (files / "a").write_text("x" * 1_000_000)
    assert "ask for less" in text(call("read", file_path="a", view_range=[1, 1]))
    assert "only 1 lines" in text(call("read", file_path="a", view_range=[2, 2]))


def test_reading_far_into_a_file_ends_at_its_time_limit(call, files):
    (files / "long").write_bytes(b"\n" * 10_000_000)
    assert "timed out after 0.1 s" in text(call("read", seconds=0.1, file_path="long", view_range=[9_999_999, 10_000_000]))


def test_binary_empty_and_crlf_files_are_named_as_such(call, files):
    (files / "binary").write_bytes(b"a\0b")
    (files / "empty").write_bytes(b"")
    (files / "crlf").write_bytes(b"a\r\nb\r\n")
    (files / "latin").write_bytes(b"caf\xe9")
    assert "binary" in text(call("read", file_path="binary"))
    assert text(call("read", file_path="empty")) == "(the file is empty)"
    assert text(call("read", file_path="crlf")) == "a\nb\n\n(the file's lines end in CRLF)"
    assert text(call("read", file_path="latin")) == "caf\ufffd"


def test_write_creates_folders_and_says_what_it_did(call, files):
    assert text(call("write", file_path="a/b/c", content="é")) == "created a/b/c (2 bytes)"
    assert text(call("write", file_path="a/b/c", content="")) == "replaced a/b/c (0 bytes)"
    assert (files / "a" / "b" / "c").read_bytes() == b""


def test_write_keeps_the_mode_and_drops_what_gives_rights(call, files):
    (files / "a").write_text("x")
    (files / "a").chmod(0o4755)
    call("write", file_path="a", content="y")
    assert (files / "a").stat().st_mode & 0o7777 == 0o755


def test_a_write_that_fails_leaves_the_old_file(call, files, monkeypatch):
    (files / "a").write_text("old")

    def full(_fd):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    assert text(call("write", file_path="a", content="new")) == "write: a: no space left on device"
    assert text(call("edit", file_path="a", old_string="old", new_string="new")) == "edit: a: no space left on device"
    assert (files / "a").read_text() == "old"
    assert [p.name for p in files.iterdir()] == ["a"]


def test_too_long_and_invalid_contents_are_refused(call, files, monkeypatch):
    monkeypatch.setattr(write, "FILE_BYTES", 10)
    assert "content: has 11 bytes" in text(call("write", file_path="a", content="x" * 11))
    assert "content: is not valid Unicode" in text(call("write", file_path="a", content="\ud800"))
    assert not list(files.iterdir())


def test_edit_needs_exactly_one_match_unless_all_are_replaced(call, files):
    (files / "a").write_text("x y x")
    assert "occurs 2 times" in text(call("edit", file_path="a", old_string="x", new_string="z"))
    assert "does not occur" in text(call("edit", file_path="a", old_string="q", new_string="z"))
    assert "must not be empty" in text(call("edit", file_path="a", old_string="", new_string="z"))
    assert "the same" in text(call("edit", file_path="a", old_string="x", new_string="x"))
    assert (files / "a").read_text() == "x y x"
    assert text(call("edit", file_path="a", old_string="y", new_string="z")) == "edited a: 1 replacement"
    both = call("edit", file_path="a", old_string="x", new_string="w", replace_all=True)
    assert text(both) == "edited a: 2 replacements"
    assert (files / "a").read_text() == "w z w"
    (files / "a").write_text("-x-x-")
    assert "more than once" in text(call("edit", file_path="a", old_string="-x-", new_string="z"))
    assert (files / "a").read_text() == "-x-x-"


def test_edit_keeps_line_endings_and_bytes_it_does_not_know(call, files):
    (files / "crlf").write_bytes(b"one\r\ntwo\r\n")
    call("edit", file_path="crlf", old_string="one\ntwo", new_string="1\n2\n3")
    assert (files / "crlf").read_bytes() == b"1\r\n2\r\n3\r\n"
    (files / "mixed").write_bytes(b"\xff one\r\ntwo\n")
    call("edit", file_path="mixed", old_string="two", new_string="2\n3")
    assert (files / "mixed").read_bytes() == b"\xff one\r\n2\n3\n"


def test_edits_at_the_same_time_are_all_kept(call, files):
    words = [f"<{n}>" for n in range(40)]
    (files / "a").write_text(" ".join(words))
    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(lambda w: call("edit", file_path="a", old_string=w, new_string=w[1:-1]), words))
    assert not [r for r in results if r.is_error]
    assert (files / "a").read_text() == " ".join(str(n) for n in range(40))


def test_a_result_is_within_the_setting(call, files, setting):
    setting("tool_output_bytes", 1000)
    (files / "a").write_bytes(b"\x01" * 900)
    result = text(call("read", file_path="a"))
    assert len(result) <= 1000
    assert "bytes left out" in result
