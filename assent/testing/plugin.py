"""Fixtures of pytest: write `pytest_plugins = ["assent.testing.plugin"]` into your `conftest.py`."""

from collections.abc import Iterator

import pytest

from assent.testing.stack import Stack, running


@pytest.fixture(scope="session")
def stack_environment() -> dict[str, str]:
    """The settings of `stack`. Define a fixture of this name to change them, for example to name your toolsets."""
    return {}


@pytest.fixture(scope="session")
def stack(stack_environment: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """A whole Assent with the stand-in model, which runs until the last test."""
    with running(tmp_path_factory.mktemp("assent") / "data", stack_environment) as running_stack:
        yield running_stack
