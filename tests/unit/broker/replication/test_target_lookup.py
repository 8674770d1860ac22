"""A follower's fetch tells how far it is, if the log has the offset that it asks for."""

from types import SimpleNamespace
from typing import Any

import pytest

from broker.cluster.image import PartitionImage
from broker.replication.read_plan import FetchParams, FetchTarget
from broker.replication.target_lookup import TargetLookup
from storage.log.results import FetchIsolation
from tests.support.fake_log import led_partition
from tests.support.manual_clock import ManualClock

START, END = 3, 7


@pytest.mark.parametrize(
    ("offset", "known"),
    [
        (START - 1, -1),
        (START, START),
        (START + 1, START + 1),
        (END, END),
        (END + 1, -1),
    ],
)
def test_s_rep_1_an_offset_out_of_range_is_not_noted(offset: int, known: int) -> None:
    partition: Any = led_partition(
        PartitionImage(leader=1, leader_epoch=4, replicas=(1, 2), isr=(1, 2))
    )
    log = partition.log
    log.log_start_offset = log.high_watermark = START
    log.log_end_offset = END
    manager: Any = SimpleNamespace(find={("t", 0): partition}.get)
    target = FetchTarget()
    target.topic, target.fetch_offset, target.leader_epoch = "t", offset, 4
    params = FetchParams(
        replica_id=2,
        isolation=FetchIsolation.LOG_END,
        min_bytes=1,
        max_bytes=1,
        hard_limit=False,
    )
    moved: list[Any] = []
    lookup = TargetLookup(manager, ManualClock())
    assert lookup.of_follower(target, params, moved) is partition
    assert partition.followers.get(2).end_offset == known
    assert moved == ([partition] if known > START else [])
