"""Lays the packages of the wheel inside `assent_server`. An editable installation finds them in the checkout, as they lie there.

`assent`, which toolsets import, is in the wheel for the processes of toolsets. For a team's own environment it is a distribution of
its own, `assent/pyproject.toml`.
"""

import sys

from setuptools import find_namespace_packages, setup

FOLDERS = ("api", "assent", "deploy", "models", "workers")
INSIDE = "" if "editable_wheel" in sys.argv else "assent_server."

packages = find_namespace_packages(
    include=[pattern for name in FOLDERS for pattern in (name, f"{name}.*")], exclude=["deploy.assent_server"]
)
setup(
    packages=["assent_server", *(INSIDE + package for package in packages)],
    package_dir={"assent_server": "deploy/assent_server"} | {INSIDE + name: name for name in FOLDERS},
)
