"""The API of a benchmark, which counts its messages to Postgres."""

import benchmarks.counting  # noqa: F401 - counts from here on

from api import create_app

__all__ = ["create_app"]
