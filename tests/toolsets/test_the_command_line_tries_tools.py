"""`assent tools`: what a tool declares, and one call of it, for who writes it."""

import json

import pytest
from click.testing import CliRunner

from api.cli.main import main
from workers.tools.python import running

REFUND = json.dumps({"order_id": "1001", "amount_cents": 500, "reason": "broken", "iban": "DE1"})


@pytest.fixture
def listed_once(entries, monkeypatch):
    """The command takes the listing that the tests have: each listing starts the toolset's program."""
    monkeypatch.setattr(running, "describe", lambda: ({"orders": list(entries.values())}, []))


@pytest.fixture
def command(shop):
    """Runs the command; what it did, with its output."""

    def run(*words, typed=""):
        return CliRunner().invoke(main, ["tools", *words], input=typed, catch_exceptions=False)

    return run


@pytest.fixture
def assent(command, listed_once):
    """The same, without a listing of its own."""
    return command


def test_it_shows_all_that_is_declared(command, entries):
    assert json.loads(command("show", "orders.refund").stdout) == entries["refund"]
    assert json.loads(command("show", "builtin.read").stdout)["name"] == "read"


def test_it_runs_what_reads_at_once(assent):
    done = assent("call", "orders.get_order", '{"order_id": "1002"}')
    assert done.exit_code == 0
    assert json.loads(done.stdout)["customer"] == "Alan Turing <alan@example.com>"


def test_it_asks_before_what_writes_without_showing_secrets(assent, shop):
    done = assent("call", "orders.refund", REFUND, typed="n\n")
    assert done.exit_code == 1
    assert "Refund 500 cents of order 1001: broken" in done.output
    assert "«masked»" in done.output
    assert "DE1" not in done.output
    assert shop.rows("SELECT * FROM shop.refunds") == []


def test_it_runs_what_writes_once_it_is_confirmed_under_the_key_that_is_given_or_its_own(assent, shop):
    assert assent("call", "orders.refund", REFUND, "--call-id", "mine", typed="y\n").exit_code == 0
    done = assent("call", "orders.refund", REFUND, "--call-id", "mine", "--yes", "--json")
    assert json.loads(done.stdout)["structured"]["call_id"] == "mine"
    assert shop.rows("SELECT call_id FROM shop.refunds") == [("mine",)]
    for _ in range(2):
        assert assent("call", "orders.refund", REFUND, "--yes").exit_code == 0
    assert len(shop.rows("SELECT DISTINCT call_id FROM shop.refunds")) == 3


def test_a_refusal_and_a_wrong_input_are_told(assent):
    done = assent("call", "orders.get_order", '{"order_id": "7"}')
    assert (done.exit_code, "get_order: there is no order '7'" in done.output) == (1, True)
    done = assent("call", "orders.get_order", '{"id": "7"}')
    assert (done.exit_code, "input.order_id: is required" in done.output) == (1, True)
    done = assent("call", "orders.get_order", "{")
    assert (done.exit_code, "the input is no JSON" in done.output) == (1, True)
    done = assent("call", "orders.give_order")
    assert (done.exit_code, "there is no tool 'orders.give_order'; there are builtin.bash" in done.output) == (1, True)


def test_a_mistake_inside_is_shown_with_its_traceback(assent, monkeypatch):
    running.end_idle()
    monkeypatch.delenv("ORDERS_DATABASE_URL")
    done = assent("call", "orders.get_order", '{"order_id": "1001"}')
    assert done.exit_code == 1
    assert "get_order: failed inside (KeyError)" in done.output
    assert "KeyError: 'ORDERS_DATABASE_URL'" in done.output


def test_what_works_on_files_is_told_where(assent, tmp_path):
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "a.txt").write_text("hello")
    words = ["call", "builtin.read", '{"file_path": "a.txt"}']
    refused = assent(*words)
    assert (refused.exit_code, "add --workdir DIR" in refused.output) == (1, True)
    assert assent(*words, "--workdir", str(tmp_path)).stdout == "hello\n"
