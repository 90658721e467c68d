"""The model's stream ends inside a tool call. On both wires no part of it is stored or run; the turn is retried."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from crashes.journey import Journey, spell
from faults.cut_streams import MODELS, PLACES, WAYS, CutModel, cut_model
from faults.shifts import Worker

COMMAND = 'echo effect >> effects; echo "}{" and so on, at some length, so that there is a middle'


@pytest.fixture(scope="module")
def served() -> Iterator[CutModel]:
    """The model."""
    with cut_model() as model:
        yield model


@pytest.fixture(scope="module")
def asking(served: CutModel, shift_env: dict[str, str], fault_folder: Path) -> Iterator[None]:
    """A turns worker that asks the model."""
    key = {"api_key_env": "ANTHROPIC_API_KEY"}
    openai = key | {"name": "openai", "kind": "openai", "base_url": f"{served.url}/v1", "models": ["llama-*"]}
    anthropic = key | {"name": "anthropic", "kind": "anthropic", "base_url": served.url, "models": ["*"]}
    registry = fault_folder / "cutting.json"
    registry.write_text(json.dumps({"providers": [openai, anthropic]}))
    worker = Worker.start("turns-cut", shift_env | {"ASSENT_PROVIDERS": str(registry)}, fault_folder)
    worker.ready()
    yield
    worker.process.stop()


@pytest.fixture
def model(served: CutModel, asking: None, workers: dict[str, Worker]) -> CutModel:
    """The model, which cuts each first reply. No other worker runs turns."""
    workers["turns"].sleep()
    served.tries.clear()
    served.whole.clear()
    served.command = COMMAND
    return served


@pytest.mark.parametrize("place", PLACES)
def test_no_part_of_a_call_is_stored_as_a_call(journeys: Callable[[], Journey], model: CutModel, place: str) -> None:
    """After each way of a cut the turn is tried again, and one whole call waits for a person and runs once."""
    model.place = place
    ways = [(wire, way) for wire in PLACES[place] for way in WAYS]
    crowd = {(wire, way): journeys().begin(model=MODELS[wire], bash="always_ask") for wire, way in ways}
    for (_wire, way), journey in crowd.items():
        journey.say(way)
    for way, journey in crowd.items():
        seen = journey.until(lambda seen, way=way: model.tries.get(way) == 2 and seen.turns[0].status == "running")
        assert (seen.calls, seen.approvals, seen.replies) == ([], [], {})
        assert not [e for e in seen.events if e.type.startswith("agent.")], "no part of the reply is published"
        (error,) = seen.of("session.error")
        assert error.body["error"]["retry_status"] == {"type": "retrying"}
    model.whole.set()
    for way, journey in crowd.items():
        approval = journey.until_asked()
        assert journey.effects() == 0
        journey.stage.decide(approval, result="allow")
        seen = journey.until_idle()
        assert [row.input for row in seen.inputs.values()] == [{"command": COMMAND}]
        assert [(t.status, t.attempt) for t in seen.turns] == [("done", 2), ("done", 1)], spell(seen)
        assert model.tries[way] == 2
        assert journey.effects() == 1
