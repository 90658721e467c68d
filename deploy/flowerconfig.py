"""Flower's settings, under Flower's own names. On a command line, every user of the machine could read the secrets.

The page of tasks shows the tool, the agent, the session and the outcome of each task.
"""

import os
import re
import sys
from ast import literal_eval
from logging import WARNING, StreamHandler, basicConfig  # Tornado would read a name `logging` as its option
from typing import Any

from flower.views import BaseHandler
from flower.views.tasks import TASK_COLUMNS
from tornado.ioloop import PeriodicCallback

from models.operate import log_lines
from models.settings.variables import refuse_needless
from workers import liveness
from workers.celery import leave_out_tasks

if ":" not in os.environ.get("FLOWER_BASIC_AUTH", ""):
    sys.exit("flower: FLOWER_BASIC_AUTH is not set: set it to NAME:PASSWORD")

refuse_needless("flower")
liveness.begin("flower")
leave_out_tasks()
_output = StreamHandler()
if log_lines.is_json():
    log_lines.use([_output], dict)
    basicConfig(handlers=[_output], level=WARNING)
for _show in (liveness.alive, liveness.ready):
    PeriodicCallback(_show, 1000).start()  # in the loop that serves the pages
basic_auth = [os.environ["FLOWER_BASIC_AUTH"]]
read_only = True

TASK_COLUMNS |= {"kwargs": "Tool and agent", "args": "Session and row", "result": "Outcome"}
tasks_columns = "name,state,result,received,kwargs,args,runtime,worker"


def format_task(task: Any) -> Any:
    """Return the task as the columns show it: names and ids alone, the session's id first, and the outcome of a failure too."""
    if task.args:
        # A row of a session: its id, the session's and the workspace's. Any other row: its id and the workspace's. A sweep: none.
        ids = re.findall(r"'(\w+)'", task.args)
        task.args = ", ".join([*ids[1:-1], *ids[:1]])
    if task.kwargs:
        task.kwargs = ", ".join(re.findall(r": '([^']*)'", task.kwargs))
    if task.exception:
        words = re.match(r"(?:Retry\(Retry\(\.\.\.\), )?(?:Failed|LeftForLater)\(('[^']*'|\"[^\"]*\")\)", task.exception)
        task.result = words[1] if words else task.exception
        if words:  # the page of a task would show the outcome twice, and where it was raised
            task.exception = task.traceback = None
    if task.result and task.result[0] in "'\"":
        task.result = literal_eval(task.result)
    return task


def _demand_password(handler: BaseHandler) -> None:
    """Have `get_current_user` return 401 without the password. Of Flower's own pages, /metrics and /healthcheck do not ask."""
    assert handler.current_user


BaseHandler.prepare = _demand_password

_queues_of_workers = BaseHandler.get_active_queue_names


def _queue_names(handler: BaseHandler) -> list[str]:
    """Return the declared queues, and those of the workers that Flower has asked. By itself Flower would name only the latter."""
    return sorted({*_queues_of_workers(handler), *(queue.name for queue in handler.capp.conf.task_queues)})


BaseHandler.get_active_queue_names = _queue_names
