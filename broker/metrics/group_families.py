"""Consumer groups: the coordinator's gauges, and the lag of each group.

The lag has kafka_exporter's names. It is the high watermark less the committed offset, or -1 if the
committed offset is -1. A partition that this broker does not lead has a committed offset but no
lag.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

from broker.coordinator.group.statistics import GroupOffsets, GroupStatistics
from broker.metrics.lines import Lines, labels
from storage.waits import PAUSE

_STATES: Final = {
    "Empty": "numgroupsempty",
    "PreparingRebalance": "numgroupspreparingrebalance",
    "CompletingRebalance": "numgroupscompletingrebalance",
    "Stable": "numgroupsstable",
    "Dead": "numgroupsdead",
}

HighWatermark = Callable[[str, int], int | None]
"""(topic, partition) to the high watermark; None if this broker does not lead the partition."""


def group_families(
    statistics: GroupStatistics,
) -> Iterator[CounterMetricFamily | GaugeMetricFamily]:
    """Yield the families of the coordinator."""
    prefix = "kafka_coordinator_group_groupmetadatamanager_"
    yield GaugeMetricFamily(prefix + "numgroups", "Groups", value=sum(statistics.groups.values()))
    counts = {str(state).replace("_", "").lower(): n for state, n in statistics.groups.items()}
    for state, name in _STATES.items():
        value = counts.get(state.lower(), 0)
        yield GaugeMetricFamily(prefix + name, f"Groups in state {state}", value=value)
    yield GaugeMetricFamily(prefix + "numoffsets", "Committed offsets", value=statistics.offsets)
    prefix = "kafka_coordinator_group_groupcoordinatormetrics_"
    counters = statistics.counters
    for name, text, value in (
        ("offset_commit", "Offsets committed", counters.commits),
        ("offset_expiration", "Committed offsets that expired", counters.expired_offsets),
        ("offset_deletion", "Committed offsets deleted", counters.deleted_offsets),
        ("group_completed_rebalance", "Rebalances completed", counters.completed_rebalances),
    ):
        yield CounterMetricFamily(prefix + name, text, value=value)
    yield GaugeMetricFamily(
        prefix + "partition_load_time_max",
        "Milliseconds: the longest load of a partition of __consumer_offsets",
        value=statistics.loading.load_time_max_ms,
    )


async def lag_families(
    groups: Iterable[GroupOffsets], high_watermark: HighWatermark
) -> list[Lines]:
    """Return the families of all groups."""
    prefix = "kafka_consumergroup_"
    members = Lines(prefix + "members", "gauge", "Members of a group")
    current = Lines(prefix + "current_offset", "gauge", "The offset that was committed")
    current_sum = Lines(prefix + "current_offset_sum", "gauge", "The same, summed over partitions")
    lag = Lines(prefix + "lag", "gauge", "Records between the committed offset and the end")
    lag_sum = Lines(prefix + "lag_sum", "gauge", "The same, summed over partitions")
    for group in groups:
        name = labels(consumergroup=group.group_id)
        members.add(name, group.members)
        for topic, partitions in list(group.offsets.items()):
            label = f"{name},{labels(topic=topic)}"
            offsets = behind = 0
            for partition, committed in list(partitions.items()):
                one = f'{label},partition="{partition}"'
                current.add(one, committed.offset)
                offsets += committed.offset
                end = high_watermark(topic, partition)
                if end is not None:
                    late = -1 if committed.offset == -1 else max(end - committed.offset, 0)
                    lag.add(one, late)
                    behind += max(late, 0)
                await PAUSE
            current_sum.add(label, offsets)
            lag_sum.add(label, behind)
        await PAUSE
    return [members, current, current_sum, lag, lag_sum]
