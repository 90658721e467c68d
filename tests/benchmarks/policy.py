"""What judging one call by 1,000 rules costs, compared with writing the same input as JSON: `make bench ARGS="policy"`."""

import json
import statistics
import time
from collections.abc import Callable
from typing import Any

from models.pure.policy import CompiledRules, rule_of
from models.pure.shell import read

RULES = 1_000
ROUNDS = 300
COMMAND = "cd src && git log --oneline -20 | grep -v 'fix: typo' | head -5"
REFUND = {"amount": 250, "currency": "EUR", "customer": {"id": "c_9", "country": "DE"}, "note": "damaged in the post"}


def main() -> None:
    """Print, for each kind of rules, the median milliseconds of a verdict, and the ratio to json.dumps."""
    shell = [f"bash(tool{n} sub *)" for n in range(RULES - 4)] + ["bash(cd *)", "bash(git log *)", "bash(grep *)", "bash(head *)"]
    same = [f"bash(git sub{n} *)" for n in range(RULES - 3)] + ["bash(cd *)", "bash(grep *)", "bash(head *)"]
    wild = [f"bash(git * word{n} *)" for n in range(RULES)]
    amounts = [{"tool": "refund", "input": [{"path": "/amount", "gt": 1_000 + n}]} for n in range(RULES)]
    texts = [{"tool": "refund", "input": [{"path": "/note", "regex": f"lost{n} (in|on) .*"}]} for n in range(RULES)]
    paths = [{"tool": "write", "input": [{"path": "/file_path", "path_glob": f"src/{n}/**"}]} for n in range(RULES)]
    line = {"command": COMMAND}
    print(f"{'reading the line alone':40}", timed(lambda: read(COMMAND), line))
    show("bash patterns, allowed by four", "bash", line, "allow", shell)
    show("bash patterns, none fits", "bash", line, "ask", same)
    show("bash patterns that deny, none fits", "bash", line, "deny", shell[:-4])
    show("bash patterns with a * inside", "bash", line, "allow", wild)
    show("numbers that deny, none fits", "refund", REFUND, "deny", amounts)
    show("expressions that deny, none fits", "refund", REFUND, "deny", texts)
    show("paths that allow, none fits", "write", {"file_path": "src/x/y.py", "content": "x" * 200}, "allow", paths)


def show(name: str, tool: str, payload: dict[str, Any], effect: str, matches: list[Any]) -> None:
    """Print one line."""
    began = time.process_time()
    rules = [rule_of({"effect": effect, "match": match}) for match in matches]
    book = CompiledRules(rules)
    compiled = (time.process_time() - began) * 1e3
    verdict = book.judge(tool, payload).effect
    print(f"{name:40}", timed(lambda: book.judge(tool, payload), payload), f"{verdict:6} read and compiled in {compiled:5.0f} ms")


def timed(act: Callable[[], Any], payload: dict[str, Any]) -> str:
    """Return the median milliseconds and the ratio as a text."""
    cost, floor = median(act), median(lambda: json.dumps(payload))
    return f"{cost:8.4f} ms {cost / floor:7.1f} x json.dumps"


def median(act: Callable[[], Any]) -> float:
    """Return the median CPU milliseconds of `ROUNDS` calls."""
    times = []
    for _ in range(ROUNDS):
        began = time.process_time()
        act()
        times.append(time.process_time() - began)
    return statistics.median(times) * 1e3


if __name__ == "__main__":
    main()
