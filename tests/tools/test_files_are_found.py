"""`glob` and `grep` find what is there, in bounds of time and size."""

import os
import threading
import time

import pytest
from looking import text

from workers.tools.builtin import find


@pytest.fixture
def tree(files):
    for age, name in enumerate(["src/b.ts", "src/deep/c.py", "a.py", ".git/config", "node_modules/m.py", ".hidden"]):
        file = files / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"text of {name}\n")
        os.utime(file, (1_000_000 - age, 1_000_000 - age))
    return files


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("*.py", ["a.py"]),
        ("**/*.py", ["src/deep/c.py", "a.py", "node_modules/m.py"]),
        ("src/**/*.{py,ts}", ["src/b.ts", "src/deep/c.py"]),
        ("**/deep/**", ["src/deep/c.py"]),
        ("s?c/[ab].*", ["src/b.ts"]),
        (".git/*", [".git/config"]),
        ("**/config", []),
        (".h*", [".hidden"]),
        ("**/a.ts", []),
    ],
)
def test_glob_lists_what_matches_newest_first(call, tree, pattern, expected):
    lines = [line for line in text(call("glob", pattern=pattern)).split("\n") if not line.endswith("/")]
    assert lines == (expected or ["no matches"])


def test_glob_gives_paths_that_read_takes(call, tree):
    for path in ("src", str(tree / "src")):
        output = text(call("glob", pattern="*.ts", path=path))
        assert text(call("read", file_path=output)) == "text of src/b.ts\n"
    assert text(call("glob", pattern="*", path="src/deep")) == "src/deep/c.py"


def test_glob_is_bounded(call, files, monkeypatch):
    for n in range(250):
        (files / f"{n}").touch()
    lines = text(call("glob", pattern="*")).split("\n")
    assert len(lines) == 201
    assert lines[-1] == "[... 50 more matches; narrow the pattern ...]"
    monkeypatch.setattr(find, "_ENTRIES", 100)
    assert "only 100 files were looked at" in text(call("glob", pattern="*"))
    assert "alternatives" in text(call("glob", pattern="{a,b}" * 12))


@pytest.mark.parametrize("pattern", ["**/" * 300 + "x", "*a" * 400 + "b"])
def test_a_hostile_glob_ends_soon(call, files, pattern):
    (files / "/".join("a" * 100)).mkdir(parents=True)
    (files / ("a" * 250)).touch()
    begun = time.monotonic()
    assert text(call("glob", pattern=pattern)) == "no matches"
    assert time.monotonic() - begun < 5


def test_glob_ends_at_its_time_limit_in_a_folder_with_many_files(call, files):
    for n in range(5000):
        (files / f"{'a' * 150}{n}").touch()
    pattern = "{" + ",".join(f"*a*a*a*b{n}" for n in range(60)) + "}"
    assert "timed out after 0.1 s" in text(call("glob", pattern=pattern, seconds=0.1))


def test_searches_write_a_name_that_is_not_utf_8_in_the_same_way(call, files):
    name = "a\udcff"
    (files / name).write_text("here\n")
    assert text(call("glob", pattern="*")) == "a\\udcff"
    assert text(call("grep", pattern="here")) == "a\\udcff:1:here"


def test_grep_names_file_line_and_text(call, tree):
    assert text(call("grep", pattern="text of .*py$")) == "a.py:1:text of a.py\nsrc/deep/c.py:1:text of src/deep/c.py"
    assert text(call("grep", pattern="TEXT", path="src")) == "no matches"
    assert text(call("grep", pattern="(?i)TEXT", path="src/b.ts")) == "src/b.ts:1:text of src/b.ts"


def test_grep_passes_over_binary_files_and_folders_of_others(call, tree):
    (tree / "binary").write_bytes(b"text\0")
    (tree / "latin").write_bytes(b"caf\xe9 text\r\n")
    output = text(call("grep", pattern="text"))
    assert "latin:1:caf\ufffd text" in output
    assert not [part for part in ("binary", ".git", "node_modules") if part in output]
    assert ".git/config:1:" in text(call("grep", pattern="text", path=".git"))


def test_grep_is_bounded_and_says_so(call, files):
    (files / "a").write_text("x\n" * 5_000)
    (files / "b").write_text("y" * 10_000 + "z\n")
    assert "more than 1000 matches" in text(call("grep", pattern="x"))
    assert "searched only in their first 2000 bytes" in text(call("grep", pattern="z"))


@pytest.mark.parametrize("pattern", ["(", "*", "(?P<", "a{1001}", "(?=a)", "((x{1000}){1000}){1000}", "\ud800"])
def test_a_wrong_pattern_is_an_error(call, files, pattern):
    result = call("grep", pattern=pattern)
    assert result.is_error
    assert "pattern: " in text(result)


def test_a_pattern_that_would_backtrack_for_ever_is_searched_in_linear_time(call, files):
    (files / "a").write_text("x" * 1_900)
    assert text(call("grep", seconds=5, pattern="(x+x+)+y")) == "no matches"


@pytest.fixture
def long_file(files):
    """Searching it takes seconds; its first line matches."""
    (files / "a").write_text("found before\n" + "x\n" * 5_000_000)


def test_grep_ends_at_its_time_limit_with_what_it_has_found(call, long_file):
    result = call("grep", seconds=0.2, pattern="before")
    assert result.is_error
    assert text(result) == "a:1:found before\n\ntimed out after 0.2 s; narrow the pattern or the path"


def test_grep_stops_when_cancelled(call, long_file):
    cancelled = threading.Event()
    threading.Timer(0.2, cancelled.set).start()
    assert "cancelled; narrow" in text(call("grep", seconds=60, cancelled=cancelled, pattern="before"))
