"""The program of a runner: `python -P start.py FD MODULE:ATTRIBUTE`. See `serving` for the protocol on the socket FD.

Loads the private modules by their files, so that no folder of Assent must be on the path.
"""

import sys
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

HERE = Path(__file__).resolve().parent
HOME = HERE.parents[3]
"""The folder of Assent's packages."""
SDK = HOME / "assent" / "__init__.py"
"""What toolsets import. It is loaded even if the interpreter has an installed `assent` of another version."""


def load(name: str, file: Path) -> None:
    """Import a file as the module or package `name`."""
    spec = spec_from_file_location(name, file)
    assert spec is not None
    assert spec.loader is not None
    sys.modules[name] = module = module_from_spec(spec)
    spec.loader.exec_module(module)


if __name__ == "__main__":
    load("assent", SDK)
    load("_assent_runner", HERE / "__init__.py")
    try:
        serving = import_module("_assent_runner.serving")
    except ModuleNotFoundError as error:
        if error.name not in {"pydantic", "pydantic_core"}:
            raise
        sys.exit(f"{sys.executable} has no pydantic, which reads the functions' types: install pydantic 2 there")
    serving.main(int(sys.argv[1]), sys.argv[2], HOME)
