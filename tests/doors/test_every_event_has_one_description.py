"""The class that an event is emitted as is the one that the API's document describes, and older events are read as they are."""

import inspect
from types import ModuleType
from typing import get_args

import httpx2
from doors.served import Caller
from rows.stage import Stage
from typing_extensions import is_typeddict

from api.v1.events.responses import EventPage
from models.database.transactions import transaction
from models.session.approval import confirmation, grant
from models.session.approval import events as of_approval
from models.session.event import of_session, of_thread
from models.session.tool_call import events as of_call
from models.session.turn import events as of_turn

MODULES = (of_session, of_thread, of_turn, of_call, of_approval, confirmation, grant)
STREAMED_ALONE = {"session.deleted"}


def types_in(module: ModuleType) -> set[str]:
    """Return the types of the events whose classes stand in a module. Types of other objects have no dot."""
    classes = [value for _, value in inspect.getmembers(module, is_typeddict) if value.__module__ == module.__name__]
    return {name for each in classes for name in get_args(each.__annotations__.get("type")) if "." in name}


def test_each_event_that_can_be_emitted_is_in_the_document() -> None:
    schema = EventPage.model_json_schema()["properties"]["data"]["items"]
    assert set().union(*map(types_in, MODULES)) - STREAMED_ALONE == set(schema["discriminator"]["mapping"])


def test_an_event_that_an_older_release_stored_is_listed_as_it_is(caller: Caller, stage: Stage) -> None:
    session = caller.session()
    caller.say(session["id"], "One.")
    body = '{"model_request_start_id": "sevt_old", "is_error": false}'
    with transaction(stage.workspace_id) as db:
        db.write("UPDATE event SET type = 'span.model_request_end', body = %(body)s::jsonb", body=body)
    with httpx2.Client(base_url=caller.base_url, headers={"x-api-key": caller.headers["x-api-key"]}) as unchecked:
        events = unchecked.get(f"/v1/sessions/{session['id']}/events").json()["data"]
    assert {"type": "span.model_request_end", "model_request_start_id": "sevt_old", "is_error": False}.items() <= events[0].items()
