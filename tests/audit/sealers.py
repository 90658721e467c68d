"""Sealers of several processes, each with a key and a file of heads of its own."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from models.audit.seal_sweep import SealSweep
from models.settings import settings

UNSET = ("ASSENT_AUDIT_KEY", "ASSENT_AUDIT_KEY_FILE", "ASSENT_AUDIT_HEADS_FILE")


@dataclass
class Sealer:
    """One process that seals. `run` gives this test process the sealer's settings meanwhile."""

    patch: pytest.MonkeyPatch
    key: str | None
    heads: Path | None
    environment: str = "production"
    sweep: SealSweep = field(default_factory=SealSweep)

    def run(self, act: Callable[[], None] | None = None) -> None:
        """Sweep once, or do something else with this process's settings."""
        values = {"KEY": self.key, "HEADS_FILE": self.heads and str(self.heads)}
        with self.patch.context() as patch:
            for name in UNSET:
                patch.delenv(name, raising=False)
            for name, value in values.items():
                if value:
                    patch.setenv(f"ASSENT_AUDIT_{name}", value)
            patch.setenv("ASSENT_ENVIRONMENT", self.environment)
            settings.cache_clear()
            try:
                (act or self.sweep.run)()
            finally:
                settings.cache_clear()
        settings.cache_clear()
