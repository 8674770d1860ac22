"""Moving logs from one log directory to another (Kafka's future logs).

A partition that is moved has two logs for a while: the one that is served, and its *future log* in
the target directory, `<topic>-<partition>.<32 hex>-future`, which `broker.replication.log_mover`
fills from the first. When it holds the same, the two change places: the served one becomes a
`-delete` directory, the future log gets its name.

    moves.create_future_log(tp, target)         the empty copy
    ...                                         the copier appends to it and flushes it
    moves.retire_source(tp)                     the served log becomes -delete, and is still used
    await moves.sync_name_of(source)            makes that rename durable
    moves.promote_future(tp)                    the future log takes its place
    await moves.checkpoint(both log directories)

In this order a crash leaves either both, and the move goes on after the start, or the future log
alone: then it is complete, because the source is retired only after its copy was synced, and it
takes the place when logs are loaded (`adopt_orphans`). There are never two logs of one name. (Kafka
renames the future log first.) An append between `retire_source` and `promote_future` would be lost
in a crash; the caller prevents it.
"""

import logging
from typing import Protocol

from protocol.errors import ErrorCode, KafkaError
from protocol.types import TopicPartition
from storage.errors import StorageError
from storage.filesystem import FileSystem
from storage.log.log import Log
from storage.manager.checkpoints import Checkpoints
from storage.manager.deletions import Deletions
from storage.manager.directories import LogDirectories
from storage.manager.flusher import Flusher
from storage.manager.log_maker import LogMaker
from storage.manager.log_table import LogTable
from storage.paths import (
    FUTURE_DIR_SUFFIX,
    MAX_NAME_LENGTH,
    DirState,
    join,
    parent_dir,
    partition_dir_name,
)
from storage.waits import at_once, call

_log = logging.getLogger(__name__)

_STATE_SUFFIX_LENGTH = 1 + 32 + len(FUTURE_DIR_SUFFIX)


class MoveFollower(Protocol):
    """Another part that has to know of moves: the cleaner."""

    def copy_begun(self, log: Log) -> None:
        """Called when copying of `log` is about to begin."""
        ...

    def pause(self, topic_partition: TopicPartition) -> None:
        """Called when the log is about to change places with its copy."""
        ...

    def moved(self, source: Log, target: Log) -> None:
        """Called when the copy `target` has taken the place of `source`."""
        ...

    def resume(self, topic_partition: TopicPartition) -> None:
        """Undoes `pause`."""
        ...


class LogMoves:
    """The steps that move logs to another log directory."""

    def __init__(
        self,
        fs: FileSystem,
        directories: LogDirectories,
        table: LogTable,
        maker: LogMaker,
        flusher: Flusher,
        deletions: Deletions,
        checkpoints: Checkpoints,
        follower: MoveFollower,
    ) -> None:
        self._fs = fs
        self._follower = follower
        self._directories = directories
        self._table = table
        self._maker = maker
        self._flusher = flusher
        self._deletions = deletions
        self._checkpoints = checkpoints

    def check(self, topic_partition: TopicPartition, target: str) -> None:
        """Check that the partition may be moved to `target`.

        Raises KafkaError: INVALID_TOPIC_EXCEPTION when the name leaves no room for the suffix of a
        future log, LOG_DIR_NOT_FOUND if `target` is not in `log.dirs`, KAFKA_STORAGE_ERROR if it is
        offline, INVALID_REPLICA_ASSIGNMENT if it is cordoned.
        """
        if len(partition_dir_name(topic_partition)) + _STATE_SUFFIX_LENGTH > MAX_NAME_LENGTH:
            raise KafkaError(
                ErrorCode.INVALID_TOPIC_EXCEPTION, "The topic name is too long to be moved."
            )
        if target not in self._directories.paths:
            raise KafkaError(
                ErrorCode.LOG_DIR_NOT_FOUND, f"Log dir {target} is not found in the config."
            )
        if target not in self._directories.live:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"Log directory {target} is offline.")
        if target in self._directories.cordoned:
            raise KafkaError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT, f"Log directory {target} is cordoned."
            )

    def create_future_log(self, topic_partition: TopicPartition, target: str) -> Log:
        """Make an empty log in `target` with the served one's log start. Raises StorageError."""
        source = self._table.logs[topic_partition]
        future = self._maker.create_future(source, target)
        self._follower.copy_begun(source)
        return future

    def cancel(self, topic_partition: TopicPartition) -> None:
        """Give the copy up, if there is one; its directory is removed later.

        Raises StorageError.
        """
        future = self._table.future.pop(topic_partition, None)
        if future is None:
            return
        self._retire(future)
        self._let_go(future)
        log_dir = parent_dir(future.dir)
        if future.log_start_offset > 0 and self._checkpoints.may_name(log_dir, topic_partition):
            at_once(self._checkpoints.write((log_dir,)))

    def retire_source(self, topic_partition: TopicPartition) -> None:
        """Rename the served log `-delete`. It stays in service until `promote_future`.

        Raises StorageError.
        """
        self._retire(self._table.logs[topic_partition])
        self._follower.pause(topic_partition)

    def restore_source(self, topic_partition: TopicPartition) -> None:
        """Undo `retire_source`, after a move that failed then. Raises StorageError."""
        source = self._table.logs[topic_partition]
        name = partition_dir_name(topic_partition)
        if source.dir != join(parent_dir(source.dir), name):
            self._rename(source, name)
            self._follower.resume(topic_partition)

    def _retire(self, log: Log) -> None:
        self._rename(log, self._maker.unique_name(log.topic_partition, DirState.DELETE))

    def _rename(self, log: Log, name: str) -> None:
        """Within its log directory. Raises StorageError."""
        directory = join(parent_dir(log.dir), name)
        with self._directories.writing(log.dir):
            self._fs.rename(log.dir, directory)
        log.moved_to(directory)

    async def sync_name_of(self, log: Log) -> None:
        """Make the name of `log`'s directory durable. Raises StorageError."""
        directory = log.dir
        with self._directories.writing(directory):
            await call(self._fs.fsync_dir, parent_dir(directory))

    def promote_future(self, topic_partition: TopicPartition) -> Log:
        """Put the future log in the place of the retired one, which goes out of service.

        Returns the future log. Raises ValueError if they end at different offsets, StorageError;
        then the source is as it was.
        """
        table = self._table
        source, future = table.logs[topic_partition], table.future[topic_partition]
        if future.log_end_offset != source.log_end_offset:
            raise ValueError(f"{future!r} does not end where {source!r} does")
        for epoch, start in source.leader_epochs.entries:
            # Epochs without records are in no batch that was copied.
            future.leader_epochs.assign(epoch, start)
        self._rename(future, partition_dir_name(topic_partition))
        future.update_config(source.config)
        future.update_high_watermark(source.high_watermark)
        del table.future[topic_partition]
        table.logs[topic_partition] = future
        self._follower.moved(source, future)
        self._follower.resume(topic_partition)
        self._let_go(source)
        _log.info("Partition %s lies in %s now", topic_partition, future.dir)
        return future

    def _let_go(self, log: Log) -> None:
        """Take a log out of service whose directory was renamed `-delete`."""
        self._flusher.forget(log)
        self._checkpoints.note_gone(parent_dir(log.dir), log.topic_partition)
        log.take_out_of_service()
        self._deletions.add_log(log.dir)

    async def checkpoint(self, *log_dirs: str) -> None:
        """Write the checkpoints of these directories, after a swap."""
        await self._checkpoints.write(log_dirs)

    def adopt_orphans(self) -> None:
        """After loading, finish moves whose source was retired before a crash.

        Does nothing while a directory is offline, because the source may be there.
        """
        if self._directories.offline:
            return
        table = self._table
        for topic_partition, future in list(table.future.items()):
            if topic_partition in table.logs:
                continue
            _log.warning("Finishing the move of %s: only %s is left", topic_partition, future.dir)
            try:
                self._rename(future, partition_dir_name(topic_partition))
            except StorageError:
                continue
            del table.future[topic_partition]
            table.logs[topic_partition] = future
