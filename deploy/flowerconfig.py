"""Flower's settings that do not belong on a command line, where anybody on the machine can read them. Names are Flower's own."""

import os
import sys

from models.variables import refuse_needless

if ":" not in os.environ.get("FLOWER_BASIC_AUTH", ""):
    sys.exit("flower: FLOWER_BASIC_AUTH is not set: give NAME:PASSWORD")

refuse_needless("flower")
basic_auth = [os.environ["FLOWER_BASIC_AUTH"]]
read_only = True
