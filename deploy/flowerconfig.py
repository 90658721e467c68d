"""Flower's secret settings, under Flower's own names. On a command line, every user of the machine could read the secrets."""

import os
import sys

from flower.views import BaseHandler

from models.settings.variables import refuse_needless

if ":" not in os.environ.get("FLOWER_BASIC_AUTH", ""):
    sys.exit("flower: FLOWER_BASIC_AUTH is not set: set it to NAME:PASSWORD")

refuse_needless("flower")
basic_auth = [os.environ["FLOWER_BASIC_AUTH"]]
read_only = True


def _demand_password(handler: BaseHandler) -> None:
    """Have `get_current_user` answer 401 without the password. Of Flower's own pages, /metrics and /healthcheck do not ask."""
    assert handler.current_user


BaseHandler.prepare = _demand_password
