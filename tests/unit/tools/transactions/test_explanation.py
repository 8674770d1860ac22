"""Why the last stable offset stands still: a cause for each letter, and what to do about it."""

import pytest

from tests.unit.tools.transactions.made import HANGING, NOW, PLACE, known
from tools.transactions.explanation import Cause, Stability, explain
from tools.transactions.hanging import Open

HELD = Stability(place=PLACE, stable=20, end=35)
FENCE = "pykafkalog transactions --fence billing"


@pytest.mark.parametrize(
    ("opened", "cause", "what", "remedy"),
    [
        ([], Cause.NOT_REPLICATED, "none is open", "cluster --health"),
        ([known()], Cause.GOES_ON, "billing, has had a transaction open for 10 s", "in 50 s"),
        ([known()], Cause.GOES_ON, "since 2023-11-14T22:13:10.000Z", FENCE),
        ([known(start_ms=NOW - 60_000)], Cause.TIME_IS_UP, "longer than its timeout of", FENCE),
        ([known(state="PrepareCommit")], Cause.DECIDED, "has committed it", "log of broker 2"),
        ([known(state="PrepareAbort")], Cause.DECIDED, "has aborted it", "ask again"),
        (
            [HANGING],
            Cause.HANGS,
            "no coordinator knows its producer id",
            "--abort orders:0 --start-offset 20",
        ),
        (
            [known(places=(("orders", 1),))],
            Cause.HANGS,
            "does not count this partition",
            "--abort orders:0 --start-offset 20",
        ),
        ([HANGING, known()], Cause.HANGS, "producer 7, epoch 3", "--abort"),
        ([known(), HANGING], Cause.GOES_ON, "producer 7, epoch 3", "--fence"),
    ],
)
def test_each_cause(opened: list[Open], cause: Cause, what: str, remedy: str) -> None:
    explanation = explain(HELD, opened, NOW)
    assert explanation.cause is cause
    assert what in explanation.what
    assert remedy in explanation.remedy
    assert explanation.holder is (opened[0] if opened else None)


def test_nothing_is_held_back_at_the_end() -> None:
    stability = Stability(place=PLACE, stable=35, end=35)
    assert explain(stability, [known()], NOW).cause is Cause.NOTHING
    # A commit between the two questions: the last stable offset has overtaken the end.
    assert Stability(place=PLACE, stable=36, end=35).held_back == 0
