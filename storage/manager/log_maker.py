"""Making new logs: of a new partition, and the copy of one that is being moved."""

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from random import Random
from typing import Final

from config.topic_config import TopicConfig
from protocol.errors import ErrorCode, KafkaError
from protocol.types import ZERO_UUID, TopicPartition, uuid_to_text
from storage.clock import Clock
from storage.errors import OutOfResources, StorageError, is_shortage
from storage.filesystem import FileSystem
from storage.log.log import Log
from storage.log_dir import write_partition_metadata
from storage.manager.directories import LogDirectories
from storage.manager.log_table import LogTable
from storage.new_log import (
    NewDirectory,
    make_directories,
    make_files,
    new_log,
    remove_directories,
)
from storage.paths import DirState, join, parent_dir, partition_dir_name, state_dir_name
from storage.recovery import LoadOptions, load_log
from storage.waits import PAUSE, call, together

_MADE_A_CALL: Final = 64
"""Logs whose files are made in one call in a thread."""

_log = logging.getLogger(__name__)


class LogMaker:
    """Makes the directories and logs of new partitions, and of copies for moves."""

    def __init__(
        self,
        fs: FileSystem,
        clock: Clock,
        random: Random,
        directories: LogDirectories,
        table: LogTable,
        *,
        producer_expiration_ms: int,
        before_new: Callable[[str, TopicPartition], None],
    ) -> None:
        """`before_new` is called with the log directory and the partition before a log is made."""
        self._fs = fs
        self._clock = clock
        self._random = random
        self._directories = directories
        self._table = table
        self._counts: Counter[str] = Counter()
        """Logs by log directory, cached by `_logs_in`."""
        self._prepared: dict[TopicPartition, NewDirectory] = {}
        """Directories that have the files of logs, which are not opened yet."""
        self._before_new = before_new
        self.producer_expiration_ms = producer_expiration_ms
        """`producer.id.expiration.ms`; may be changed at any time."""

    async def prepare(self, wanted: Iterable[tuple[TopicPartition, bytes]]) -> None:
        """See `LogManager.prepare`."""
        counts = Counter(self._logs_in())
        new = []
        for topic_partition, topic_id in wanted:
            if topic_partition not in self._table.logs:
                for log_dir in self._directories.emptiest_first(lambda: counts)[:1]:
                    counts[log_dir] += 1
                    with suppress(StorageError):  # making the log meets it again
                        self._before_new(log_dir, topic_partition)
                        path = join(log_dir, partition_dir_name(topic_partition))
                        new.append(NewDirectory(topic_partition, path, topic_id))
            await PAUSE
        for at in range(0, len(new), 2 * _MADE_A_CALL):
            middle, end = at + _MADE_A_CALL, at + 2 * _MADE_A_CALL
            await together(self._make(new[at:middle]), self._make(new[middle:end]))

    async def _make(self, some: Sequence[NewDirectory]) -> None:
        if some:
            made = await call(make_directories, self._fs, some)
            self._prepared.update((new.topic_partition, new) for new in made)

    async def discard_prepared(self) -> None:
        """See `LogManager.discard_prepared`."""
        unused, self._prepared = tuple(self._prepared.values()), {}
        if unused:
            await call(remove_directories, self._fs, unused)

    def unique_name(self, topic_partition: TopicPartition, state: DirState) -> str:
        """A new name for a partition directory in `state`."""
        return state_dir_name(topic_partition, state, f"{self._random.getrandbits(128):032x}")

    def get_or_create(
        self,
        topic_partition: TopicPartition,
        topic_id: bytes,
        config: TopicConfig,
        *,
        is_new: bool,
    ) -> Log:
        """See `LogManager.get_or_create_log`."""
        log = self._table.logs.get(topic_partition)
        if log is None:
            offline = self._directories.offline
            if offline and not is_new:
                raise StorageError(
                    partition_dir_name(topic_partition),
                    f"Can not create log for {topic_partition} because log directories "
                    f"{', '.join(offline)} are offline",
                )
            log = self._create(topic_partition, topic_id, config)
            self._table.adopt(log)
        elif topic_id != ZERO_UUID:
            self._insist_on_topic_id(log, topic_id)
        return log

    def _logs_in(self) -> dict[str, int]:
        """Logs by log directory, counted again if another part has added or removed logs."""
        total = len(self._table.logs) + len(self._table.future)
        if total != self._counts.total():
            self._counts = Counter(parent_dir(log.dir) for log in self._table.everything())
        return self._counts

    def _create(self, topic_partition: TopicPartition, topic_id: bytes, config: TopicConfig) -> Log:
        ready = self._prepared.pop(topic_partition, None)
        if ready is not None and ready.topic_id == topic_id:
            log_dir = parent_dir(ready.path)
            if log_dir in self._directories.live:
                log = self._open_new(ready.path, topic_partition, topic_id, config)
                self._counts[log_dir] += 1
                return log
        name = partition_dir_name(topic_partition)
        for log_dir in self._directories.emptiest_first(self._logs_in):
            directory = join(log_dir, name)
            is_new = not self._fs.exists(directory)
            try:
                self._fs.make_dirs(directory)
            except OSError as error:
                if is_shortage(error):
                    raise OutOfResources(directory, error) from error
                self._directories.report_failure(log_dir, error)
            else:
                # Whatever fails now, no other log directory is tried: with a second directory the
                # next start would not know which of them is the partition.
                try:
                    if is_new:
                        self._before_new(log_dir, topic_partition)
                        with self._directories.writing(directory):
                            make_files(self._fs, directory, topic_id)
                        log = self._open_new(directory, topic_partition, topic_id, config)
                    else:
                        log = self._fill(directory, topic_partition, topic_id, config)
                except OutOfResources:
                    if is_new:
                        self._unmake(directory)
                    raise
                self._counts[log_dir] += 1
                return log
        raise StorageError(
            name, f"No log directories available. Tried {', '.join(self._directories.paths)}"
        )

    def _unmake(self, directory: str) -> None:
        """Remove a new directory whose log could not be opened for lack of descriptors."""
        with suppress(OSError):
            self._fs.remove_tree(directory)

    def _open_new(
        self, directory: str, topic_partition: TopicPartition, topic_id: bytes, config: TopicConfig
    ) -> Log:
        """The log whose files were just made. Raises StorageError."""
        with self._directories.writing(directory):
            log = new_log(
                self._fs,
                self._clock,
                directory,
                topic_partition,
                config,
                self._random,
                topic_id=topic_id,
                producer_expiration_ms=self.producer_expiration_ms,
            )
        _log.info("Created log for partition %s in %s", topic_partition, directory)
        return log

    def create_future(self, source: Log, target: str) -> Log:
        """An empty log in `target` that begins where `source` does. Raises StorageError."""
        directory = join(target, self.unique_name(source.topic_partition, DirState.FUTURE))
        with self._directories.writing(directory):
            self._fs.make_dirs(directory)
        future = self._fill(
            directory,
            source.topic_partition,
            source.topic_id,
            source.config,
            log_start_offset=source.log_start_offset,
        )
        self._table.adopt_future(future)
        return future

    def _fill(
        self,
        directory: str,
        topic_partition: TopicPartition,
        topic_id: bytes,
        config: TopicConfig,
        *,
        log_start_offset: int = 0,
    ) -> Log:
        """A log in a partition directory that may have files. Raises StorageError."""
        options = LoadOptions(
            config=config,
            clean=False,  # if the directory has files, recover them
            log_start_offset=log_start_offset,
            topic_id=topic_id,
            producer_expiration_ms=self.producer_expiration_ms,
        )
        self._before_new(parent_dir(directory), topic_partition)
        with self._directories.writing(directory):
            if topic_id != ZERO_UUID:
                write_partition_metadata(self._fs, directory, topic_id, sync=False)
            log = load_log(self._fs, self._clock, directory, topic_partition, options, self._random)
        _log.info("Created log for partition %s in %s", topic_partition, directory)
        return log

    def _insist_on_topic_id(self, log: Log, topic_id: bytes) -> None:
        """Give a log from before topic ids the id; raise INCONSISTENT_TOPIC_ID if it has another.

        Raises StorageError.
        """
        if log.topic_id == ZERO_UUID:
            with self._directories.writing(log.dir):
                write_partition_metadata(self._fs, log.dir, topic_id, sync=False)
            log.topic_id = topic_id
        elif log.topic_id != topic_id:
            raise KafkaError(
                ErrorCode.INCONSISTENT_TOPIC_ID,
                f"Tried to assign topic ID {uuid_to_text(topic_id)} to log for topic partition "
                f"{log.topic_partition}, but log already contained topic ID "
                f"{uuid_to_text(log.topic_id)}",
            )
