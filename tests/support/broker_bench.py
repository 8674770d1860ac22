"""A ReplicaManager over fake logs, for tests of handlers."""

from types import SimpleNamespace

from broker.api.fetch import FetchHandler
from broker.cluster.image import PartitionImage
from broker.deadlines import Deadlines
from broker.quotas.quotas import Quotas
from broker.replication.batch_looker import BatchLooker
from broker.replication.down_converter import DownConverter
from broker.replication.purgatory import Purgatory
from broker.replication.replica_manager import Purgatories, ReplicaManager
from broker.request import RequestContext
from broker.world.machine import MachineWorkers
from config.topic_config import TopicConfig
from protocol.records.builder import build_batch
from protocol.types import TopicPartition
from tests.support.api_calls import CONNECTION
from tests.support.fake_log import FakeImage, FakeLogManager
from tests.support.manual_clock import ManualClock

BROKER_ID = 1
NOW = 1_700_000_000_000


class Bench:
    """The replication room of one stand-alone broker, with topics made on demand."""

    def __init__(self, log_manager=None, clock=None):
        self.clock = clock or ManualClock(NOW)
        self.deadlines = Deadlines(self.clock)
        self.purgatories = Purgatories(
            Purgatory("Produce", self.deadlines), Purgatory("Fetch", self.deadlines)
        )
        self.image = FakeImage()
        self.logs = log_manager or FakeLogManager()
        self.replicas = ReplicaManager(
            self.logs,
            self.image,
            self.clock,
            SimpleNamespace(broker_id=BROKER_ID, transaction_max_timeout_ms=900_000),
            self.purgatories,
            MachineWorkers(),
        )

    def topic(self, name="t", partitions=1, config=None, *, is_new=True, leader_epoch=0, **where):
        """Make and lead a topic; return its partitions."""
        topic_id = name.encode().ljust(16, b".")
        self.image.add(name, topic_id, partitions)
        image = led(leader_epoch, **where)
        return [
            self.replicas.make_leader(
                TopicPartition(name, index), topic_id, image, config or TopicConfig(), is_new
            )
            for index in range(partitions)
        ]

    def advance(self, seconds):
        """Let time pass and fire the timers that are due."""
        self.clock.advance(seconds)
        return self.deadlines.run_due()


def led(leader_epoch=0, replicas=(BROKER_ID,), isr=None):
    """Make the image of a partition that broker 1 leads; all replicas are in sync by default."""
    return PartitionImage(
        leader=BROKER_ID,
        leader_epoch=leader_epoch,
        replicas=replicas,
        isr=replicas if isr is None else isr,
    )


def context(api_version, client_id="test", api_key=0):
    """Make the context of one request."""
    return RequestContext(
        api_key=api_key,
        api_version=api_version,
        correlation_id=7,
        client_id=client_id,
        connection=CONNECTION,
        received=0.0,
    )


def fetch_handler(replicas, sessions, clock, max_bytes=57_671_680, *, quotas=None, allowed=None):
    """Make the handler of Fetch with Kafka's limit, which looks into batches."""
    return FetchHandler(
        replicas,
        sessions,
        max_bytes,
        converter=DownConverter(BatchLooker(), replicas.storage_failed),
        clock=clock,
        quotas=quotas or Quotas(clock),
        allowed=allowed,
    )


def with_bytes(response):
    """Return a fetch response whose records are bytes: those that lie in a file are read."""
    for topic in getattr(response, "responses", ()):
        for data in getattr(topic, "partitions", ()):
            if hasattr(data.records, "read"):
                data.records = data.records.read()
    return response


def batch(values=(b"v",), timestamp=NOW, **how):
    """Build a client's batch of format 2."""
    return memoryview(
        bytearray(build_batch([(timestamp, b"k", value, ()) for value in values], **how))
    )
