"""What an agent writes is shown with a few kinds of markup, and can neither bring its own nor hide anything."""

import time
from functools import cache

import pytest

from api.desk.rendering.markdown import LONGEST, Pen


def test_the_usual_marks_are_shown() -> None:
    markup = Pen()("# Title\n\n**bold** *soft* ~~gone~~ `code`\n\n- one\n- two\n\n| a |\n|---|\n| 1 |\n\n```py\nx = 1\n```\n")
    for part in (
        "<strong>bold</strong>",
        "<em>soft</em>",
        "<s>gone</s>",
        "<code>code</code>",
        "<li>one</li>",
        "<td>1</td>",
        "x = 1\n",
    ):
        assert part in markup
    assert '<p class="heading level-1">Title</p>' in markup, "a message does not change the outline of the page"


@pytest.mark.parametrize("text", ["<script>alert(1)</script>", "a <b onclick='x'>b</b>", "<!-- c -->\n\nd", "&lt;i&gt;", "`<i>`"])
def test_html_is_text(text: str) -> None:
    markup = Pen()(text)
    assert "<script" not in markup
    assert "<b " not in markup
    assert "<i>" not in markup
    assert "<!--" not in markup


@pytest.mark.parametrize(
    "address",
    [
        *("javascript:alert(1)", "JaVaScRiPt:x", "data:text/html,x", "//evil.example", "/inbox/halt", "file:///etc/passwd"),
        *("https:evil.example", "https:/evil.example", "http:inbox"),
    ],
)
def test_a_link_leads_only_to_the_web_or_to_mail(address: str) -> None:
    for text in (f"[x]({address})", f"![x]({address})", f"<{address}>"):
        assert "<a " not in Pen()(text)


def test_a_link_says_where_it_leads_and_an_image_is_one() -> None:
    markup = Pen()("[https://good.example](https://good.example@evil.example/a) ![logo](https://img.example/x.png)")
    assert '<span class="place">(evil.example)</span>' in markup
    assert '<a href="https://img.example/x.png" rel="noopener noreferrer nofollow">logo</a>' in markup
    assert "<img" not in markup


def test_nothing_is_hidden() -> None:
    markup = Pen()("a\u202eb &#x202E; [ref]: https://evil.example\n\n[ref]: https://evil.example 'title'")
    assert "&lt;U+202E&gt;" in markup
    assert "\u202e" not in markup
    assert markup.count("https://evil.example") == 2, "a definition of a reference is shown"


ORDINARY = "Some **bold** words and `code` in a [link](https://a.example).\n\n" * 300


@cache
def cost(text: str) -> float:
    """The CPU time of a text's markup, in seconds: the least of three."""
    times = []
    for _ in range(3):
        before = time.thread_time()
        Pen()(text[:LONGEST])
        times.append(time.thread_time() - before)
    return min(times)


@pytest.mark.parametrize(
    "text", ["[" * LONGEST, "![" * (LONGEST // 2), "[a](b" * 4000, "*a **" * 4000, "> " * 10_000, "|a|\n|-|\n" * 2000]
)
def test_a_hostile_text_costs_no_more_than_some_ordinary_ones(text: str) -> None:
    assert cost(text) < 20 * cost(ORDINARY)


def test_texts_stay_plain_once_a_page_s_time_is_used_up() -> None:
    pen = Pen(seconds=1e-9)
    assert "<strong>" in pen("**bold** at first")
    assert pen("**plain** by now") == '<p class="plain">**plain** by now</p>'


def test_a_very_long_text_stays_plain() -> None:
    assert Pen()("**a**" + " " * LONGEST).startswith('<p class="plain">**a**')
