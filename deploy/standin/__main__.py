"""`python -m deploy.standin --port N`: the stand-in model on 127.0.0.1. Port 0 selects a free port and prints it."""

import argparse

from deploy.standin import serve

parser = argparse.ArgumentParser(prog="python -m deploy.standin", description="A model that costs nothing, for tests.")
parser.add_argument("--port", type=int, default=8099)
serve(parser.parse_args().port)
