"""For tests of toolsets and policies: the verdicts of Assent's own rules, and a whole Assent with a model that costs nothing.

    from assent.testing import judge

    def test_small_refunds_need_nobody():
        assert judge(REFUNDS, "refund", {"order_id": "o1", "amount_cents": 500}).effect == "allow"

`judge` and `running` start the command of the distribution `assent-server`, which is not a dependency of this package. The
environment variable ASSENT_SERVER_PYTHON names the interpreter that has it; by default, it is the interpreter of the tests.
`assent.testing.plugin` has the fixtures for pytest.
"""

from assent.testing.server import ServerMissing
from assent.testing.stack import Stack, running
from assent.testing.verdicts import Verdict, judge

__all__ = ["ServerMissing", "Stack", "Verdict", "judge", "running"]
