"""A leader and a follower whose logs a test writes first, by (leader epoch, number of records)."""

from broker.cluster.image import BrokerImage, PartitionImage
from broker.replication.partition import Partition
from config.topic_config import TopicConfig
from protocol.records.batch import read_header, set_place
from protocol.records.builder import build_batch
from protocol.types import TopicPartition
from storage.log.log import Log
from storage.log.results import FetchIsolation
from tests.support.replication.cluster import TOPIC, TOPIC_ID, Cluster, SimBroker, image_of

TP = TopicPartition(TOPIC, 0)
LEADER, FOLLOWER = 1, 2

History = list[tuple[int, int]]
"""(leader epoch, records written in it), in order."""


def write(log: Log, history: History) -> None:
    """Write a batch per record, with the same bytes for the same offset and epoch."""
    for epoch, count in history:
        for _ in range(count):
            offset = log.log_end_offset
            batch = bytearray(build_batch([(1, b"k", b"%d@%d" % (epoch, offset), ())]))
            set_place(batch, read_header(batch), offset, epoch)
            log.appender.append_as_follower(batch)


class Pair:
    """Two brokers of a cluster without a controller: the test names the leader."""

    def __init__(self, leader: History, follower: History, *, mark: int | None = None) -> None:
        """`mark`: the follower's high watermark."""
        self.cluster = Cluster(1, brokers=2, partitions=1)
        self.cluster.topic_config = TopicConfig(segment_bytes=1 << 20)
        self.cluster.slow = 0.0
        self.loop = self.cluster.loop
        self.adding: tuple[int, ...] = ()
        """Replicas that a reassignment adds, as of the next `lead` and `follow`."""
        self.leader, self.follower = self.cluster.brokers.values()
        for broker, history in ((self.leader, leader), (self.follower, follower)):
            broker.begin()
            for known in self.cluster.brokers:
                broker.image.set_broker(BrokerImage(broker_id=known, endpoints=()))
            log = broker.logs.get_or_create_log(TP, TOPIC_ID, self.cluster.topic_config, True)
            write(log, history)
        if mark is not None:
            self.log_of(self.follower).update_high_watermark(mark)

    def log_of(self, broker: SimBroker) -> Log:
        log = broker.logs.get_log(TP)
        assert log is not None
        return log

    def image(self, epoch: int, *, leader: int = LEADER, isr: tuple[int, ...]) -> PartitionImage:
        return PartitionImage(
            leader=leader,
            leader_epoch=epoch,
            replicas=(LEADER, FOLLOWER),
            isr=isr,
            adding_replicas=self.adding,
        )

    def begin(self, epoch: int, *, isr: tuple[int, ...] = (LEADER,)) -> None:
        """Have the one lead and the other follow in `epoch`."""
        self.lead(epoch, isr=isr)
        self.follow(epoch, isr=isr)

    def lead(self, epoch: int, *, isr: tuple[int, ...] = (LEADER,)) -> Partition:
        config, image = self.cluster.topic_config, self.image(epoch, isr=isr)
        self.leader.image.set_topic(image_of({0: image}))
        return self.leader.replicas.make_leader(TP, TOPIC_ID, image, config)

    def follow(self, epoch: int, *, isr: tuple[int, ...] = (LEADER,)) -> Partition:
        config, image = self.cluster.topic_config, self.image(epoch, isr=isr)
        self.follower.image.set_topic(image_of({0: image}))
        return self.follower.replicas.make_follower(TP, TOPIC_ID, image, config)

    def contents(self, broker: SimBroker) -> dict[int, bytes]:
        return broker.contents(0, FetchIsolation.LOG_END)

    @property
    def requests(self) -> int:
        """Fetches that the follower has sent."""
        return sum(one.requests for one in self.follower.fetchers.statistics().fetchers)

    def check_equal(self) -> None:
        """The follower has what the leader has."""
        assert self.contents(self.follower) == self.contents(self.leader)
        ours, theirs = self.log_of(self.follower), self.log_of(self.leader)
        assert ours.log_end_offset == theirs.log_end_offset
        ours._check()
