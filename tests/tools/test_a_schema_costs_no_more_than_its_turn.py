"""A tool's schema comes from a client and its input from a model: together they must not stop the process of all other turns."""

import time

from models.pure.fitting import misfit

DEEP = 14
"""Each level doubles the time: at 20 it is minutes, for every turn of the process."""


def test_an_input_is_judged_in_bounded_time() -> None:
    doubling = {f"a{i}": {"allOf": [{"$ref": f"#/$defs/a{i + 1}"}] * 2} for i in range(DEEP)} | {f"a{DEEP}": {}}
    # Only a text meets the costly part, so that the door's own trial (nulls) does not.
    schema = {
        "type": "object",
        "$defs": doubling,
        "properties": {"x": {"if": {"type": "string"}, "then": {"$ref": "#/$defs/a0"}}},
    }

    began = time.monotonic()
    misfit(schema, {"x": "go"})

    assert time.monotonic() - began < 0.5
