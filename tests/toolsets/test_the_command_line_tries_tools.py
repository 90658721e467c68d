"""`assent tools`: shows a tool's declaration to its developer, and calls the tool once."""

import json

import pytest
from click.testing import CliRunner

from api.cli.main import main
from workers.tools.python import running

REFUND = json.dumps({"order_id": "1001", "amount_cents": 500, "reason": "broken", "iban": "DE1"})


@pytest.fixture
def assent(shop):
    """Runs `assent tools` and returns its exit code and output."""

    def run(*words, typed=""):
        return CliRunner().invoke(main, ["tools", *words], input=typed, catch_exceptions=False)

    return run


def test_show_prints_the_whole_declaration(assent, entries):
    assert json.loads(assent("show", "orders.refund").stdout) == entries["refund"]
    assert json.loads(assent("show", "builtin.read").stdout)["name"] == "read"


def test_a_reading_tool_runs_without_a_confirmation(assent):
    result = assent("call", "orders.get_order", '{"order_id": "1002"}')
    assert result.exit_code == 0
    assert json.loads(result.stdout)["customer"] == "Alan Turing <alan@example.com>"


def test_a_writing_tool_needs_a_confirmation_that_shows_no_secrets(assent, shop):
    result = assent("call", "orders.refund", REFUND, typed="n\n")
    assert result.exit_code == 1
    assert "Refund 500 cents of order 1001: broken" in result.output
    assert "«masked»" in result.output
    assert "DE1" not in result.output
    assert shop.rows("SELECT * FROM shop.refunds") == []


def test_a_confirmed_call_runs_under_the_given_key_or_a_new_one(assent, shop):
    assert assent("call", "orders.refund", REFUND, "--call-id", "mine", typed="y\n").exit_code == 0
    result = assent("call", "orders.refund", REFUND, "--call-id", "mine", "--yes", "--json")
    assert json.loads(result.stdout)["structured"]["call_id"] == "mine"
    assert shop.rows("SELECT call_id FROM shop.refunds") == [("mine",)]
    for _ in range(2):
        assert assent("call", "orders.refund", REFUND, "--yes").exit_code == 0
    assert len(shop.rows("SELECT DISTINCT call_id FROM shop.refunds")) == 3


def test_a_tool_error_and_a_wrong_input_are_printed(assent):
    result = assent("call", "orders.get_order", '{"order_id": "7"}')
    assert (result.exit_code, "get_order: there is no order '7'" in result.output) == (1, True)
    result = assent("call", "orders.get_order", '{"id": "7"}')
    assert (result.exit_code, "input.order_id: is required" in result.output) == (1, True)
    result = assent("call", "orders.get_order", "{")
    assert (result.exit_code, "the input is not JSON" in result.output) == (1, True)
    result = assent("call", "orders.give_order")
    assert (result.exit_code, "there is no tool 'orders.give_order'; there are builtin.bash" in result.output) == (1, True)


def test_an_exception_is_printed_with_its_traceback(assent, monkeypatch):
    running.end_idle()
    monkeypatch.delenv("ORDERS_DATABASE_URL")
    result = assent("call", "orders.get_order", '{"order_id": "1001"}')
    assert result.exit_code == 1
    assert "get_order: failed inside (KeyError)" in result.output
    assert "KeyError: 'ORDERS_DATABASE_URL'" in result.output


def test_a_tool_that_works_on_files_needs_a_workdir(assent, tmp_path):
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "a.txt").write_text("hello")
    words = ["call", "builtin.read", '{"file_path": "a.txt"}']
    refused = assent(*words)
    assert (refused.exit_code, "add --workdir DIR" in refused.output) == (1, True)
    assert assent(*words, "--workdir", str(tmp_path)).stdout == "hello\n"
