"""Calls a broker's fetch handler as a client of any version does, through the codecs."""

from random import Random

from broker.replication.fetch_session import FetchSessionCache
from protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
    ReplicaState,
)
from tests.support.begun import begin, slept
from tests.support.broker_bench import Bench, batch, context, fetch_handler, with_bytes

IDS = 13


def topic_id(name):
    return name.encode().ljust(16, b".")


class Asked:
    """A broker and its fetch handler; every message passes the codec of its version."""

    def __init__(self, slots=1000, fetch_max_bytes=57_671_680, **topic):
        self.bench = Bench()
        self.partitions = self.bench.topic(**topic)
        self.sessions = FetchSessionCache(self.bench.clock, slots, random=Random(1))
        replicas, clock = self.bench.replicas, self.bench.clock
        self.handler = fetch_handler(replicas, self.sessions, clock, fetch_max_bytes)

    def append(self, *values, index=0, **how):
        partition = self.partitions[index]
        partition.append_as_leader_nowait(batch(list(values) or [b"v"], **how))
        self.bench.replicas.wake(partition)

    def raw(
        self,
        offsets=None,
        version=12,
        *,
        topic="t",
        max_wait=500,
        min_bytes=1,
        max_bytes=1 << 20,
        partition_max_bytes=1 << 20,
        isolation=0,
        session=(0, -1),
        replica=-1,
        forget=(),
        **per_partition,
    ):
        """`offsets` is {partition: fetch offset} of one topic, or {topic: {partition: offset}}.

        Returns the request as it has begun.
        """
        offsets = {0: 0} if offsets is None else offsets
        if not offsets or not isinstance(next(iter(offsets.values())), dict):
            offsets = {topic: offsets} if offsets else {}
        by_id = version >= IDS
        self.message = FetchRequest(
            max_wait_ms=max_wait,
            min_bytes=min_bytes,
            max_bytes=max_bytes,
            isolation_level=isolation,
            session_id=session[0],
            session_epoch=session[1],
            topics=[
                FetchTopic(
                    **({"topic_id": topic_id(name)} if by_id else {"topic": name}),
                    partitions=[
                        FetchPartition(
                            partition=index,
                            fetch_offset=offset,
                            partition_max_bytes=partition_max_bytes,
                            **per_partition,
                        )
                        for index, offset in asked.items()
                    ],
                )
                for name, asked in offsets.items()
            ],
            forgotten_topics_data=[
                ForgottenTopic(
                    **({"topic_id": topic_id(name)} if by_id else {"topic": name}),
                    partitions=[index],
                )
                for name, index in forget
            ],
            **(
                {"replica_state": ReplicaState(replica_id=replica)}
                if version >= 15
                else {"replica_id": replica}
            ),
        )
        codec = FetchRequest.codec(version)
        self.version = version
        request = codec.parse(bytearray(codec.build(self.message)))
        return begin(self.handler(context(version), request))

    def fetch(self, *args, **kwargs):
        return self.done(slept(self.raw(*args, **kwargs), self.bench.advance))

    def park(self, *args, **kwargs):
        begun = self.raw(*args, **kwargs)
        assert not begun.done
        return begun

    def done(self, begun):
        return through(begun.reply, self.version)

    def nothing_is_parked(self):
        statistics = self.bench.purgatories.fetch.statistics()
        assert (statistics.parked, statistics.watchers) == (0, 0)
        assert self.bench.deadlines.statistics().active == 0


def through(response, version):
    codec = FetchResponse.codec(version)
    return codec.parse(codec.build(with_bytes(response)))


def partitions_of(response):
    return [partition for topic in response.responses for partition in topic.partitions]


def only(response):
    (partition,) = partitions_of(response)
    return partition
