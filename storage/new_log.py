"""Making an empty log: first its directory with its files, in any thread, then the log over them.

`storage.recovery` opens whatever a directory holds, an empty one too; but topics are made by the
thousand, and looking for what cannot be there costs as much as making the files.
"""

from collections.abc import Iterable
from contextlib import suppress
from random import Random
from typing import NamedTuple

from config.topic_config import TopicConfig
from protocol.types import ZERO_UUID, TopicPartition
from storage.clock import Clock
from storage.epochs import LeaderEpochCache
from storage.filesystem import FileSystem
from storage.log.log import Log
from storage.log.store import SegmentStore
from storage.log_dir import write_partition_metadata
from storage.paths import LEADER_EPOCH_CHECKPOINT, index_file, join, log_file, time_index_file
from storage.producers.state import ProducerStateManager


class NewDirectory(NamedTuple):
    """A partition directory to be made."""

    topic_partition: TopicPartition
    path: str
    topic_id: bytes


def make_directories(fs: FileSystem, wanted: Iterable[NewDirectory]) -> list[NewDirectory]:
    """Make directories with the files of empty logs, up to the first that fails; return them.

    A directory that exists already is left out. Never raises.
    """
    made = []
    for new in wanted:
        try:
            if fs.exists(new.path):
                continue
            fs.make_dirs(new.path)
            make_files(fs, new.path, new.topic_id)
        except OSError:
            remove_directories(fs, (new,))
            break
        made.append(new)
    return made


def remove_directories(fs: FileSystem, unused: Iterable[NewDirectory]) -> None:
    """Remove directories that were made in vain. Never raises."""
    for new in unused:
        with suppress(OSError):
            fs.remove_tree(new.path)


def make_files(fs: FileSystem, directory: str, topic_id: bytes) -> None:
    """Make the files of an empty log in an empty directory. Raises OSError.

    The record file is not preallocated, as the log may never be written to.
    """
    if topic_id != ZERO_UUID:
        write_partition_metadata(fs, directory, topic_id, sync=False)
    for path in (log_file(directory, 0), index_file(directory, 0), time_index_file(directory, 0)):
        fs.open(path, create=True).close()


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
    """Open the log whose files `make_files` has made; it holds none of them open. Raises OSError.

    It is as `load_log` opens it in a directory without files of a log, and so are the files.
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
    store.segments.add(store.open_segment(0, size=0))
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
