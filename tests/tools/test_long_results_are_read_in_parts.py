"""A result that is too long for the model is stored whole, up to a limit. `read_result` reads it in parts, clean and bounded."""

import base64
import os
import re

import pytest
from hypothesis import given
from hypothesis import strategies as some
from looking import text

from workers.tools import clean, execution
from workers.tools.builtin.results import READ_RESULT

PNG = b"\x89PNG\r\n\x1a\n"
LIMIT = 2_000


def blocks(*texts):
    return [{"type": "text", "text": text} for text in texts]


def shown(content):
    return "\n".join(block["text"] for block in content if block["type"] == "text")


def image(data, media_type="image/png", kind="image"):
    encoded = data if isinstance(data, str) else base64.b64encode(data).decode()
    return {"type": kind, "source": {"type": "base64", "media_type": media_type, "data": encoded}}


@pytest.fixture
def read(context):
    """Calls `read_result` on a text that is stored as call `c1`."""

    def run(kept, **fields):
        given_context = context(fields.pop("seconds", 30))
        given_context.stored_result = {"c1": kept.encode()}.get
        return execution.execute(READ_RESULT, given_context, {"call_id": "c1", **fields})

    return run


# What is stored


def test_a_short_result_is_not_stored():
    assert clean.bounded(blocks("a", "b"), LIMIT, 10_000, "c1") == (blocks("a", "b"), None)


def test_a_long_result_is_stored_whole_and_says_how_to_read_it():
    long = "".join(f"line {n}\n" for n in range(1, 1_001))
    content, whole = clean.bounded(blocks(f"stdout:\n{long}", "exit code: 0"), LIMIT, 10_000_000, "c1")
    assert whole == f"stdout:\n{long}\nexit code: 0".encode()
    assert content[1]["text"] == "exit code: 0"
    note = re.search(
        r'\[\.\.\. (\d+) bytes left out; read_result with call_id "c1" and start (\d+) reads on \.\.\.\]', shown(content)
    )
    assert note is not None
    left_out = len(whole) - (len(shown(content)) - len(note[0]) - 2)
    assert int(note[1]) == left_out


@given(
    some.lists(some.builds(str.__mul__, some.text(max_size=20), some.integers(0, 150)), min_size=1, max_size=5),
    some.integers(1_500, 3_000),
)
def test_what_the_model_sees_stays_within_its_limit(texts, limit):
    content, whole = clean.bounded(blocks(*texts), limit, 10_000, "sevt_0123456789")
    assert len(shown(content).encode()) <= limit + len(content)
    assert (whole is not None) == ("bytes left out" in shown(content))


def test_the_note_names_the_line_at_the_cut(read):
    long = "".join(f"line {n}\n" for n in range(1, 1_001)) + "x" * 9_000
    for texts in ((long,), ("stderr:\nfirst", long)):
        content, whole = clean.bounded(blocks(*texts), LIMIT, 10_000_000, "c1")
        head, note = shown(content).split("\n[... ")
        start = re.search(r"start (\d+) ", note)
        assert text(read(whole.decode(), start=int(start[1]))).split("\n")[1].startswith(head.split("\n")[-1])


def test_beyond_the_storage_limit_head_and_tail_are_stored():
    _, whole = clean.bounded(blocks("a" * 50_000 + "z" * 50_000), LIMIT, 10_000, "c1")
    assert len(whole) <= 10_000
    assert whole.startswith(b"aaa")
    assert whole.endswith(b"zzz")
    assert b"bytes left out ...]" in whole


def test_a_shell_stores_all_output_that_fits(call, each_shell):
    result = call("bash", command="seq 50000; echo oops >&2")
    assert result.whole is not None
    assert (
        result.whole.decode()
        == "stdout:\n" + "".join(f"{n}\n" for n in range(1, 50_001)) + "\nstderr:\noops\n\nexit code: 0\ndirectory: ."
    )


# How it is read


def test_a_stored_result_is_read_to_its_end_in_parts(read, setting):
    setting("tool_output_bytes", 3000)
    kept = [f"line {n} " + "é" * (n % 50) for n in range(1, 501)]
    lines_read, start = [], 1
    while start:
        page = text(read("\n".join(kept) + "\n", start=start))
        assert len(page.encode()) <= 3_000
        first, last, total = map(int, re.match(r"\[lines (\d+) to (\d+) of (\d+)\]\n", page).groups())
        assert (first, total) == (start, 500)
        lines = page.split("\n")[1:]
        more = re.fullmatch(r"\[\.\.\. go on with start (\d+) \.\.\.\]", lines[-1])
        lines_read += lines[:-1] if more else lines
        assert len(lines_read) == last
        start = int(more[1]) if more else 0
    assert lines_read == kept


def test_ten_megabytes_in_one_line_are_read_in_parts(read):
    kept = "".join(f"{n:09d}," for n in range(1_000_000))
    response = text(read(kept, start=2_501))
    assert response.startswith("[lines 2501 to ")
    assert "of 5000]\n000500000," in response
    assert text(read(kept, search="000777777")).startswith("3889:")


def test_a_hundred_thousand_lines_are_searched(read):
    kept = "".join(f"number {n}\n" for n in range(1, 100_001))
    assert text(read(kept, search="number 77777$")) == "77777:number 77777"
    assert text(read(kept, search="nothing")) == "no line matches, of lines 1 to 100000"
    assert text(read(kept, start=99_999)) == "[lines 99999 to 100000 of 100000]\nnumber 99999\nnumber 100000"


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("b", "2:b\n4:ab"),
        ("^b$", "2:b"),
        ("(?i)B$", "2:b\n4:ab"),
        (r"\Ab", "2:b"),
        ("^$", "3:"),
        ("a|b", "1:a\n2:b\n4:ab"),
        (r"b\z", "2:b\n4:ab"),
    ],
)
def test_a_search_looks_at_each_line_by_itself(read, pattern, expected):
    assert text(read("a\nb\n\nab\n", search=pattern)) == expected


def test_a_search_goes_on_where_it_stopped(read):
    kept = "".join(f"{n} {'x' * 200}\n" for n in range(1, 2_001))
    numbers, start = [], 1
    while start:
        page = text(read(kept, search="x", start=start))
        numbers += [int(line.split(":")[0]) for line in page.split("\n") if not line.startswith("[")]
        more = re.search(r"go on with start (\d+) ", page)
        start = int(more[1]) if more else 0
    assert numbers == list(range(1, 2_001))


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"call_id": "c2"}, "c2: has no stored result"),
        ({"call_id": "\0" + "x" * 9_000}, "has no stored result"),
        ({"start": 5}, "has only 2 lines"),
        ({"search": "("}, "search: missing )"),
        ({"search": "x" * 1_001}, "search: has more than 1000 characters"),
        ({"search": "\ud800"}, "search: "),
    ],
)
def test_wrong_fields_of_read_result_are_short_errors(read, fields, says):
    result = read("a\nb", **fields)
    assert result.is_error
    assert says in text(result)
    assert len(text(result)) < 1_000


def test_a_search_ends_at_its_time_limit(read):
    assert text(read("a\n" * 10_000, search="b", seconds=0)) == "read_result: timed out after 0 s"


# Clean, wherever it comes from

ODD = "a\0b\u202ec\x1b[31md\u2028e"
CLEAN = "a\\x00b\\u202ec\\x1b[31md\\u2028e"


def test_odd_text_is_written_out_in_the_stored_result_too():
    _, whole = clean.bounded(blocks(ODD * 1_000), LIMIT, 1_000_000, "c1")
    assert whole.decode() == CLEAN * 1_000


def test_odd_names_are_written_out_in_listings(call, files):
    odd = os.fsencode("x\nforged:1:\u202e\x1b[31m") + b"\xff"
    (files / os.fsdecode(odd)).write_text("here\n")
    assert text(call("glob", pattern="*")) == "x\\nforged:1:\\u202e\\x1b[31m\\udcff"
    page = text(call("grep", pattern="here"))
    assert page.startswith("x\\nforged:1:\\u202e\\x1b[31m")
    assert "\n" not in page


def test_odd_contents_are_written_out(call, files, each_shell):
    (files / "a").write_bytes(b"a\x01\xe2\x80\xae\xff\x1b[31m\n")
    for result in (call("read", file_path="a"), call("grep", pattern="a"), call("bash", command="cat a; cat a >&2")):
        assert "a\\x01\\u202e\ufffd\\x1b[31m" in text(result)


@pytest.mark.parametrize("line", ["x", "\\000", "\\033[1m", "\\342\\200\\256", "\\377", "\\r\\n", "\\n"])
def test_output_of_anything_beyond_the_limits_is_clean_and_bounded(call, setting, line):
    setting("tool_result_bytes", 200_000)
    command = f"printf '{line}%.0s' {{1..10000}} > a; for i in {{1..25}}; do cat a a; cat a a >&2; done"
    result = call("bash", command=command)
    assert len(text(result).encode()) <= 100_000
    assert 150_000 < len(result.whole) <= 200_000
    for shown_text in (text(result), result.whole.decode()):
        assert not clean._UNSEEN.search(shown_text)
    assert "exit code: 0" in text(result)


# Images


def test_a_good_image_passes_with_nothing_else_in_it():
    block = {**image(PNG + b"data"), "cache_control": {"type": "ephemeral"}}
    assert clean.readable_blocks([block]) == [image(PNG + b"data")]


def test_an_images_type_comes_from_its_bytes():
    assert clean.readable_blocks([image(PNG, "image/jpeg")])[0]["source"]["media_type"] == "image/png"


@pytest.mark.parametrize(
    ("block", "says"),
    [
        (image(PNG + b"x" * 5_000_000), "more than 5000000 bytes in base64"),
        (image(b"<svg/>", "image/svg+xml"), "its bytes are none of image/png"),
        (image("n/t base64!"), "not valid base64"),
        (image(b"MZ", "application/pdf", "document"), "its bytes are none of application/pdf"),
        ({"type": "image", "source": {"type": "url", "url": "http://169.254.169.254/"}}, "only base64 data"),
        ({"type": "image"}, "only text, images and documents"),
        ({"type": "audio\u202e", "data": "x"}, "only text, images and documents"),
        ({}, "only text, images and documents"),
    ],
)
def test_a_block_that_cannot_be_shown_becomes_a_text_with_the_reason(block, says):
    ((shown_block,), _) = clean.bounded([block], LIMIT, 10_000, "c1")
    assert shown_block["type"] == "text"
    assert says in shown_block["text"]
    assert len(shown_block["text"]) < 300


def test_a_document_of_text_is_text():
    block = {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "a\0"}}
    assert clean.bounded([block], LIMIT, 10_000, "c1")[0] == blocks("a\\x00")


def test_images_are_limited_in_number_and_in_total_size():
    many = clean.readable_blocks([image(PNG)] * 30)
    assert [block["type"] for block in many] == ["image"] * 20 + ["text"] * 10
    large = clean.readable_blocks([image(PNG + b"x" * 3_000_000)] * 8)
    assert [block["type"] for block in large].count("image") == 4
