"""Fetch against a model: sessions lose nothing, budgets hold, long polls end when they should."""

from hypothesis import given, settings
from hypothesis import strategies as st

from protocol.records.batch import iter_batches
from tests.support.broker_bench import batch
from tests.support.fetch_bench import Asked, partitions_of

PARTITIONS = 4
SIZES = st.sampled_from((1, 10, 100, 400))
INDEXES = st.integers(0, PARTITIONS - 1)

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("append"), INDEXES, SIZES),
        st.tuples(st.just("fetch"), st.sampled_from((1, 300, 1000, 1 << 20)), st.just(0)),
        st.tuples(st.just("forget"), INDEXES, st.just(0)),
        st.tuples(st.just("follow"), INDEXES, st.just(0)),
        st.tuples(st.just("delete"), INDEXES, st.just(0)),
        st.tuples(st.just("lose"), st.just(0), st.just(0)),
    ),
    max_size=40,
)


class Consumer:
    """A client with an incremental session, as KIP-227 says that clients behave."""

    def __init__(self, asked, version):
        self.asked = asked
        self.version = version
        self.positions = dict.fromkeys(range(PARTITIONS), 0)
        self.sent = {}
        """The fetch offsets that the session has, by partition."""
        self.marks = {}
        self.session = (0, 0)
        self.seen = {index: [] for index in range(PARTITIONS)}

    def fetch(self, max_bytes):
        changed = {
            index: offset
            for index, offset in self.positions.items()
            if self.session[1] == 0 or self.sent.get(index) != offset
        }
        forgotten = [index for index in self.sent if index not in self.positions]
        response = self.asked.fetch(
            changed,
            self.version,
            session=self.session,
            forget=[("t", index) for index in forgotten],
            max_wait=0,
            max_bytes=max_bytes,
        )
        assert response.error_code == 0
        self.sent.update(changed)
        for index in forgotten:
            del self.sent[index]
        self.session = (response.session_id, self.session[1] + 1 if response.session_id else 0)
        answered = partitions_of(response)
        for partition in answered:
            self.take(partition)
        return answered

    def take(self, partition):
        index = partition.partition_index
        assert index in self.positions
        if partition.error_code:
            assert partition.error_code == 1
            self.positions[index] = partition.log_start_offset
            self.marks.pop(index, None)
            return
        self.marks[index] = (partition.high_watermark, partition.log_start_offset)
        for _, header in iter_batches(partition.records):
            assert header.base_offset >= self.positions[index]
            self.seen[index].append(header.base_offset)
            self.positions[index] = header.next_offset


@settings(max_examples=60, deadline=None)
@given(steps=STEPS, version=st.sampled_from((12, 13)))
def test_s_read_11_a_session_tells_all_that_is_news_and_loses_nothing(steps, version):
    asked = Asked(partitions=PARTITIONS)
    consumer = Consumer(asked, version)
    for step, argument, size in steps:
        if step == "append":
            asked.append(b"x" * size, index=argument)
        elif step == "fetch":
            answered = consumer.fetch(argument)
            waiting = [
                index
                for index, offset in consumer.positions.items()
                if offset < asked.partitions[index].log.high_watermark
            ]
            # Something always comes while there is something to read.
            assert answered or not waiting
            for index in consumer.positions:
                log = asked.partitions[index].log
                if index in consumer.marks:
                    assert consumer.marks[index] == (log.high_watermark, log.log_start_offset)
        elif step == "forget" and len(consumer.positions) > 1 and consumer.session[0]:
            consumer.positions.pop(argument, None)
            consumer.marks.pop(argument, None)
        elif step == "follow" and argument not in consumer.positions:
            consumer.positions[argument] = (consumer.seen[argument] or [-1])[-1] + 1
        elif step == "delete":
            partition = asked.partitions[argument]
            partition.delete_records((partition.log.log_start_offset + 1) // 2)
        elif step == "lose":
            consumer.session = (consumer.session[0], 0)
            consumer.sent.clear()
    for _ in range(200):
        if not any(p.records for p in consumer.fetch(1000)):
            break
    assert consumer.fetch(1 << 20) == []
    for index in consumer.positions:
        log = asked.partitions[index].log
        assert consumer.positions[index] == log.log_end_offset
        assert consumer.seen[index] == sorted(set(consumer.seen[index]))


@settings(max_examples=60, deadline=None)
@given(
    before=st.lists(st.tuples(INDEXES, SIZES), max_size=3),
    after=st.lists(st.tuples(INDEXES, SIZES), max_size=12),
    min_bytes=st.integers(1, 3000),
    limit=st.sampled_from((300, 1000, 1 << 20)),
    isolation=st.sampled_from((0, 1)),
)
def test_s_read_6_a_long_poll_ends_with_the_append_that_brings_min_bytes(
    before, after, min_bytes, limit, isolation
):
    asked = Asked(partitions=PARTITIONS)
    arrived = dict.fromkeys(range(PARTITIONS), 0)

    def append(index, size):
        asked.append(b"x" * size, index=index)
        arrived[index] += len(batch([b"x" * size]))

    def enough():
        return sum(min(size, limit) for size in arrived.values()) >= min_bytes

    for index, size in before:
        append(index, size)
    reply = asked.raw(
        dict.fromkeys(range(PARTITIONS), 0),
        min_bytes=min_bytes,
        partition_max_bytes=limit,
        isolation=isolation,
    )
    if reply.done:
        # The first batch comes whole even above the limit, so "enough" may be reached sooner.
        assert enough() or any(size > limit for size in arrived.values())
        return
    assert not enough()
    for index, size in after:
        append(index, size)
        if enough():
            assert reply.done
            break
        # A batch larger than what is left of a partition's limit may be counted in full.
        assert not reply.done or any(size > limit for size in arrived.values())
    asked.bench.advance(1)
    assert reply.done
    asked.nothing_is_parked()


@settings(max_examples=60, deadline=None)
@given(
    appended=st.lists(st.tuples(INDEXES, SIZES), max_size=25),
    max_bytes=st.sampled_from((1, 100, 700, 5000)),
    limit=st.sampled_from((1, 300, 2000)),
)
def test_s_read_4_the_byte_budget_holds_after_the_first_batch(appended, max_bytes, limit):
    asked = Asked(partitions=PARTITIONS)
    first = {}
    for index, size in appended:
        asked.append(b"x" * size, index=index)
        first.setdefault(index, len(batch([b"x" * size])))
    answered = partitions_of(
        asked.fetch(
            dict.fromkeys(range(PARTITIONS), 0),
            max_wait=0,
            max_bytes=max_bytes,
            partition_max_bytes=limit,
        )
    )
    assert [p.partition_index for p in answered] == list(range(PARTITIONS))
    sizes = {p.partition_index: len(p.records) for p in answered}
    leading = next((index for index in sizes if sizes[index]), None)
    assert (leading is None) == (not appended)
    left = max_bytes
    for index, size in sizes.items():
        allowed = max(min(limit, left), 0)
        if index == leading:
            allowed = max(allowed, first[index])
            assert size >= first[index]
        assert size <= allowed
        left -= size
