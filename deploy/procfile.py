"""The lines of the Procfile, and what a process needs to run its line in any folder."""

import os
import re
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NoReturn

from honcho.environ import parse_procfile

from models.settings import Settings
from models.settings.variables import names_of_settings

ROOT = Path(__file__).parents[1]
"""The folder of Assent's packages: a checkout, or an installed `assent_server`. Every process starts there, since Python and Celery
look for modules in the current folder first. Other packages of these names may be installed, or lie in the folder of the person who
starts Assent."""
PROCFILE = Path(__file__).with_name("Procfile")
_PATHS = (Path, Path | None)


def lines(procfile: Path = PROCFILE) -> dict[str, str]:
    """Return the shell line of each process, by the process's name."""
    processes: dict[str, str] = parse_procfile(procfile.read_text("utf-8")).processes
    return processes


def run(name: str) -> NoReturn:
    """Replace this process by a process of the Procfile, with the same environment and the same pid."""
    folder = Path.cwd()
    env = with_absolute_paths(os.environ, folder)
    if name == "tools":
        env.setdefault("ASSENT_TOOLSET_FOLDER", str(folder))
    env["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), env.get("PATH", os.defpath)])
    os.chdir(ROOT)
    line = f"exec {with_own_interpreter(lines()[name])}"
    os.execve("/bin/sh", ["/bin/sh", "-c", line], env)  # noqa: S606 - the Procfile's own line


def with_own_interpreter(line: str) -> str:
    """Return a line of the Procfile that runs the Python of this process. PATH may have another `python`, or none."""
    return re.sub(r"^python(?= )", lambda _: shlex.quote(sys.executable), line)


def with_own_port(variables: Mapping[str, str], number: int) -> dict[str, str]:
    """Return the variables with the port of ASSENT_METRICS_ADDRESS raised by `number`: on one machine each process needs one."""
    host, colon, port = variables.get("ASSENT_METRICS_ADDRESS", "").rpartition(":")
    own = {"ASSENT_METRICS_ADDRESS": f"{host}:{int(port) + number}"} if colon and port.isdecimal() else {}
    return {**variables, **own}


def with_absolute_paths(variables: Mapping[str, str], folder: Path) -> dict[str, str]:
    """Return the variables with each path of a setting absolute: people mean paths from the folder where they start Assent."""
    paths = [variable for name, variable in names_of_settings().items() if Settings.model_fields[name].annotation in _PATHS]
    absolute = {name: str(folder / variables[name]) for name in paths if variables.get(name)}
    entries = variables.get("ASSENT_TOOLSET_PATH", ".").split(os.pathsep)
    absolute["ASSENT_TOOLSET_PATH"] = os.pathsep.join(str(folder / entry) for entry in entries)
    return {**variables, **absolute}
