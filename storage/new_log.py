"""Making an empty log in a partition directory that was made just now.

`storage.recovery` opens whatever a directory holds, an empty one too; but topics are made by the
thousand, and looking for what cannot be there costs as much as making the files.
"""

from random import Random

from config.topic_config import TopicConfig
from protocol.types import TopicPartition
from storage.clock import Clock
from storage.epochs import LeaderEpochCache
from storage.filesystem import FileSystem
from storage.log.log import Log
from storage.log.store import SegmentStore
from storage.paths import LEADER_EPOCH_CHECKPOINT, join
from storage.producers.state import ProducerStateManager


def new_log(
    fs: FileSystem,
    clock: Clock,
    directory: str,
    topic_partition: TopicPartition,
    config: TopicConfig,
    random: Random,
    *,
    topic_id: bytes,
    producer_expiration_ms: int,
) -> Log:
    """Make the log; it begins at offset 0 and holds no file open. Raises OSError.

    It is as `load_log` opens it in a directory without files of a log, and leaves the same files.
    """
    store = SegmentStore(fs, clock, directory, config, random)
    epochs = LeaderEpochCache(fs, join(directory, LEADER_EPOCH_CHECKPOINT), random)
    producers = ProducerStateManager(
        fs,
        topic_partition,
        directory,
        names=(),
        expiration_ms=producer_expiration_ms,
        random=random,
    )
    store.begin(0).release()
    return Log(
        topic_partition,
        store,
        epochs,
        producers,
        log_start_offset=0,
        log_end_offset=0,
        recovery_point=0,
        topic_id=topic_id,
    )
