"""The folder of an installed Assent, and its commands.

A wheel keeps Assent's packages `api`, `deploy`, `models` and `workers` in this folder, so that a team may install packages of these
names beside it. Whoever runs Assent's code has the folder `HOME` first on the path: the commands put it there, and every other
process starts in it. In a checkout, the folder is the checkout.
"""

import sys
from pathlib import Path

_HERE = Path(__file__).resolve().parent
HOME = _HERE if (_HERE / "models").is_dir() else _HERE.parents[1]
"""The folder of Assent's packages."""


def main() -> None:
    """Run the command `assent`."""
    sys.path.insert(0, str(HOME))
    from api.cli.main import assent_command
    from api.cli.main import main as run

    run(prog_name=assent_command(), complete_var="_ASSENT_COMPLETE")


def health() -> None:
    """Run the command `assent-health`."""
    sys.path.insert(0, str(HOME))
    from deploy.health import main as run

    run()
