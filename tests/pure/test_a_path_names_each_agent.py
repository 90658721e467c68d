"""A path in words names each agent from the session's own to the one that asks, whatever they are called."""

from models.pure.text.path import path_in_words


def test_the_session_s_own_agent_is_named_alone() -> None:
    assert path_in_words(["Support"]) == "Support"


def test_a_sub_agent_stands_behind_its_coordinator() -> None:
    assert path_in_words(["Coordinator", "Researcher"]) == "Coordinator › Researcher"


def test_no_name_looks_like_two() -> None:
    assert path_in_words(["Coordinator", "Reader › Writer"]) == "Coordinator › Reader > Writer"


def test_no_name_hides_or_breaks_the_line() -> None:
    assert path_in_words(["Lead", "a\n\nb\u202ec"]) == "Lead › a b<U+202E>c"


def test_a_long_name_leaves_room_for_the_others() -> None:
    path = path_in_words(["L" * 256, "Writer"])
    assert path.endswith("… › Writer")
    assert len(path) < 80
    assert path_in_words(["L" * 256]) == "L" * 256
