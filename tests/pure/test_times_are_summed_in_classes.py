"""Times to a decision are summed in classes: a median and a ninth tenth are right to within the class."""

import random
import statistics
from collections import Counter

import pytest

from models.operate.insights.waits import BOUNDS, BY_ITSELF, CLASSES, QUICK, QUICK_SECONDS, quantile, wait_of


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9, 0.99])
@pytest.mark.parametrize("seed", range(5))
def test_a_quantile_is_in_the_class_of_the_true_one(share: float, seed: int) -> None:
    source = random.Random(seed)
    times = [source.lognormvariate(4, 2) for _ in range(1001)]
    true = sorted(times)[round(share * 1000)]
    result = quantile(Counter(map(wait_of, times)), share)
    assert result is not None
    assert abs(wait_of(result) - wait_of(true)) <= (0 if share == 0.5 else 1)
    assert share != 0.5 or wait_of(result) == wait_of(statistics.median(times))


def test_what_nobody_decided_has_no_time() -> None:
    assert quantile({BY_ITSELF: 5}, 0.5) is None
    assert quantile({}, 0.5) is None
    assert quantile({BY_ITSELF: 500, wait_of(10): 1}, 0.5) == quantile({wait_of(10): 1}, 0.5)


def test_three_seconds_are_quick_and_more_are_not() -> None:
    assert wait_of(QUICK_SECONDS) == QUICK
    assert wait_of(QUICK_SECONDS + 0.01) == QUICK + 1


def test_the_classes_are_those_that_rows_hold() -> None:
    assert list(BOUNDS) == sorted(set(BOUNDS))
    assert (BY_ITSELF, *range(len(BOUNDS) + 1)) == CLASSES
    assert wait_of(10**9) == CLASSES[-1]
    assert len(CLASSES) == 43, "a stored row holds so many counts: append a class, and never insert one"
