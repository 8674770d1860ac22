"""A follower takes the leader's marks over as far as its own log goes."""

from typing import Any

import pytest

from broker.replication.copying import take_marks
from tests.support.broker_bench import batch
from tests.support.real_bench import RealBench

END = 5


def follower(*, mark: int) -> Any:
    """A partition of five records, over a real log, with this high watermark."""
    (partition,) = RealBench().topic("t", replicas=(1, 2), isr=(1, 2))
    for _ in range(END):
        partition.append_as_leader_nowait(batch([b"x"]))
    partition.log.update_high_watermark(mark)
    return partition


@pytest.mark.parametrize(("told", "start"), [(0, 0), (2, 2), (3, 3), (4, 3), (9, 3)])
def test_the_log_start_does_not_pass_the_high_watermark(told: int, start: int) -> None:
    partition = follower(mark=0)
    assert take_marks(partition, high_watermark=3, log_start=told)
    assert (partition.log.log_start_offset, partition.log.high_watermark) == (start, 3)
    assert not take_marks(partition, high_watermark=3, log_start=0)
    assert partition.log.log_start_offset == start


@pytest.mark.parametrize(("told", "mark"), [(1, 1), (4, 4), (END, END), (END + 1, END)])
def test_s_rep_1_the_high_watermark_is_kept_within_the_log_and_may_go_back(
    told: int, mark: int
) -> None:
    partition = follower(mark=2)
    assert take_marks(partition, high_watermark=told, log_start=0)
    assert partition.log.high_watermark == mark
