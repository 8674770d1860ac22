"""A read that others share is what each would have read alone, whatever happens in between."""

from hypothesis import given, settings
from hypothesis import strategies as st

from broker.replication.read_plan import FetchParams, FetchRead, FetchTarget
from config.topic_config import TopicConfig
from storage.errors import OffsetOutOfRange
from storage.log.results import FetchIsolation, FileSlice, StartOffsetReason
from tests.support.broker_bench import batch
from tests.support.real_bench import RealBench

OFFSETS = st.integers(0, 12)
READS = st.tuples(
    st.just("read"),
    OFFSETS,
    st.sampled_from(list(FetchIsolation)),
    st.sampled_from((0, 100, 1 << 20)),
)
CHANGES = st.one_of(
    st.tuples(st.just("append"), st.sampled_from((1, 1, 200))),
    st.tuples(st.just("begin"), st.sampled_from((1, 1, 200))),
    st.tuples(st.just("follow"), OFFSETS),
    st.tuples(st.just("delete"), OFFSETS),
    st.tuples(st.just("truncate"), OFFSETS),
    st.tuples(st.just("restart"), OFFSETS),
    st.tuples(st.just("roll"), st.just(0)),
)


def outcome(partition, offset, isolation, max_bytes, shared):
    target = FetchTarget()
    target.topic, target.partition = "t", partition
    target.fetch_offset, target.max_bytes = offset, max_bytes
    params = FetchParams(
        replica_id=-1, isolation=isolation, min_bytes=1, max_bytes=1 << 20, hard_limit=False
    )
    read = FetchRead(params, shared)
    read.run([target], None, None)
    told = []
    for _, data, size in read.entries:
        records = data.records
        told.append(
            (
                data.partition_index,
                data.error_code,
                data.high_watermark,
                data.last_stable_offset,
                data.log_start_offset,
                data.aborted_transactions,
                records.read() if isinstance(records, FileSlice) else bytes(records),
                size,
            )
        )
    return told, read.size, read.unfitting, read.urgent, read.is_due, read._left, read._min_one


@settings(deadline=None)
@given(st.lists(st.one_of(READS, CHANGES), max_size=40))
def test_shared_reads_are_what_each_reader_would_get_alone(steps):
    bench = RealBench()
    (partition,) = bench.topic("t", config=TopicConfig(segment_bytes=1000), replicas=(1, 2))
    shared, log = bench.replicas.shared_reads, partition.log
    place = (0, FetchIsolation.LOG_END, 1 << 20)
    for step, (what, value, *how) in enumerate(steps):
        if what == "read":
            place = (value, *how)
            for _ in range(3):
                assert outcome(partition, *place, shared) == outcome(partition, *place, None)
        elif what == "append":
            partition.append_as_leader_nowait(batch([bytes([step]) * value]))
        elif what == "begin":
            sequence = log.log_end_offset
            partition.append_as_leader_nowait(
                batch(
                    [b"x" * value],
                    producer_id=sequence,
                    producer_epoch=0,
                    base_sequence=0,
                    transactional=True,
                )
            )
        elif what == "follow":
            partition.record_follower_fetch(2, min(value, log.log_end_offset), knows_epoch=True)
        elif what == "delete":
            try:
                log.maybe_increment_log_start_offset(
                    value, StartOffsetReason.CLIENT_RECORD_DELETION
                )
            except OffsetOutOfRange:
                continue
            log.delete_old_segments()
        elif what == "truncate":
            log.truncate_to(max(value, log.log_start_offset))
        elif what == "restart":
            log.truncate_fully_and_start_at(value)
        else:
            log.roll()
        assert outcome(partition, *place, shared) == outcome(partition, *place, None)
