"""Logs on their way from one log directory to another (Kafka's future logs).

A partition that is moved has two logs for a while: the one that is served, and its *future log* in
the target directory, `<topic>-<partition>.<32 hex>-future`, which a copier (`broker.replication`)
fills from the first. When it holds the same, the two change places: the served one becomes a
`-delete` directory, the future log gets its name.

    manager.create_future_log(tp, target)         the empty copy
    ...                                           the copier appends to it
    manager.retire_source(tp)                     the served log becomes -delete, and is still used
    manager.sync_dir_of(...)                      that is durable
    manager.promote_future(tp)                    the future log takes its place

In this order a crash leaves either both, and the move goes on after the start, or the future log
alone: then it is complete, as nothing is retired before its copy was synced, and takes the place
when logs are loaded (`adopt_orphans`). Never are there two logs of one name. (Kafka renames the
future log first.) An append between `retire_source` and `promote_future` would be lost in a crash;
the caller lets none happen.

One of the layers of `LogManager`; everything here belongs to the thread that owns the logs.
"""

import logging

from protocol.errors import ErrorCode, KafkaError
from protocol.types import ZERO_UUID, TopicPartition
from storage.errors import StorageError
from storage.log.log import Log
from storage.log_dir import write_partition_metadata
from storage.log_upkeep import LogUpkeep
from storage.paths import (
    FUTURE_DIR_SUFFIX,
    MAX_NAME_LENGTH,
    DirState,
    join,
    parent_dir,
    partition_dir_name,
    state_dir_name,
)
from storage.recovery import LoadOptions, load_log

_log = logging.getLogger(__name__)

_STATE_SUFFIX_LENGTH = 1 + 32 + len(FUTURE_DIR_SUFFIX)


class LogMoves(LogUpkeep):
    """See the module docstring."""

    def check_move(self, topic_partition: TopicPartition, target: str) -> None:
        """May this partition be told to lie in `target`?

        Raises KafkaError: INVALID_TOPIC_EXCEPTION when the name leaves no room for the suffix of a
        future log, LOG_DIR_NOT_FOUND for what is not in `log.dirs`, KAFKA_STORAGE_ERROR when it is
        offline.
        """
        if len(partition_dir_name(topic_partition)) + _STATE_SUFFIX_LENGTH > MAX_NAME_LENGTH:
            raise KafkaError(
                ErrorCode.INVALID_TOPIC_EXCEPTION, "The topic name is too long to be moved."
            )
        if target not in self._all_dirs:
            raise KafkaError(
                ErrorCode.LOG_DIR_NOT_FOUND, f"Log dir {target} is not found in the config."
            )
        if target not in self._dirs:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"Log directory {target} is offline.")

    def future_log(self, topic_partition: TopicPartition) -> Log | None:
        """The copy of a partition that is being moved."""
        return self._future.get(topic_partition)

    def future_logs(self) -> list[Log]:
        """All copies of partitions that are being moved."""
        return list(self._future.values())

    def create_future_log(self, topic_partition: TopicPartition, target: str) -> Log:
        """An empty log in `target` that begins where the served one does. Raises StorageError."""
        source = self._logs[topic_partition]
        unique = f"{self._random.getrandbits(128):032x}"
        directory = join(target, state_dir_name(topic_partition, DirState.FUTURE, unique))
        try:
            self._fs.make_dirs(directory)
            if source.topic_id != ZERO_UUID:
                write_partition_metadata(self._fs, directory, source.topic_id, sync=False)
            options = LoadOptions(
                config=source.config,
                clean=False,
                log_start_offset=source.log_start_offset,
                topic_id=source.topic_id,
                producer_expiration_ms=self._config.producer_id_expiration_ms,
            )
            future = load_log(self._fs, self._clock, directory, topic_partition, options)
        except OSError as error:
            self.report_failure(target, error)
            raise StorageError(directory, error) from error
        _log.info("Created log for partition %s in %s", topic_partition, directory)
        self._adopt_future(future)
        return future

    def _adopt_future(self, future: Log) -> None:
        previous = self._future.get(future.topic_partition)
        if previous is not None:
            raise StorageError(
                future.dir,
                f"Duplicate log directories for {future.topic_partition} are found in both "
                f"{future.dir} and {previous.dir}. Recover broker from this failure by manually "
                "deleting one of the two directories for this partition.",
            )
        future.connect(failed=self._log_failed, rolled=self._log_rolled, rolling=self._log_rolling)
        self._future[future.topic_partition] = future

    def cancel_move(self, topic_partition: TopicPartition) -> None:
        """Give the copy up; its directory is removed later. No error when there is none.

        Raises StorageError.
        """
        future = self._future.pop(topic_partition, None)
        if future is None:
            return
        try:
            self._retire(future)
        except OSError as error:
            self._log_failed(future.dir, error)
            raise StorageError(future.dir, error) from error
        future.take_out_of_service()
        self._discard(future)
        log_dir = parent_dir(future.dir)
        if topic_partition in self._dirs[log_dir].checkpointed:
            # An old recovery point would be taken for one of the next copy.
            self._checkpoint(log_dir)

    def retire_source(self, topic_partition: TopicPartition) -> None:
        """Name the served log `-delete`. It is served on until `promote_future`.

        Raises StorageError.
        """
        source = self._logs[topic_partition]
        try:
            self._retire(source)
        except OSError as error:
            self._log_failed(source.dir, error)
            raise StorageError(source.dir, error) from error

    def restore_source(self, topic_partition: TopicPartition) -> None:
        """The opposite of `retire_source`: the move failed at the last moment."""
        source = self._logs[topic_partition]
        directory = join(parent_dir(source.dir), partition_dir_name(topic_partition))
        if source.dir == directory:
            return
        try:
            self._fs.rename(source.dir, directory)
        except OSError as error:
            self._log_failed(source.dir, error)
            raise StorageError(source.dir, error) from error
        source.moved_to(directory)

    def _retire(self, log: Log) -> None:
        unique = f"{self._random.getrandbits(128):032x}"
        name = state_dir_name(log.topic_partition, DirState.DELETE, unique)
        directory = join(parent_dir(log.dir), name)
        self._fs.rename(log.dir, directory)
        log.moved_to(directory)

    def sync_dir_of(self, log: Log) -> None:
        """The name of `log` is durable when this returns. May run in a thread.

        Raises StorageError.
        """
        try:
            self._fs.fsync_dir(parent_dir(log.dir))
        except OSError as error:
            self._log_failed(log.dir, error)
            raise StorageError(log.dir, error) from error

    def promote_future(self, topic_partition: TopicPartition) -> Log:
        """The future log takes the place of the retired one, which is let go of. Returns it.

        Both must end at the same offset. Raises StorageError: then the source is as it was.
        """
        source, future = self._logs[topic_partition], self._future[topic_partition]
        if future.log_end_offset != source.log_end_offset:
            raise ValueError(f"{future!r} does not end where {source!r} does")
        for epoch, start in source.leader_epochs.entries:
            # Epochs without records are in no batch.
            future.leader_epochs.assign(epoch, start)
        self._settle_name(future)
        future.update_config(source.config)
        future.update_high_watermark(source.high_watermark)
        del self._future[topic_partition]
        self._logs[topic_partition] = future
        # Else a later flush would miss the files of the one that is gone.
        rolled = [entry for entry in self._rolled if entry[0] is not source]
        self._rolled.clear()
        self._rolled.extend(rolled)
        source.take_out_of_service()
        self._discard(source)
        _log.info("Partition %s lies in %s now", topic_partition, future.dir)
        return future

    def _settle_name(self, future: Log) -> None:
        directory = join(parent_dir(future.dir), partition_dir_name(future.topic_partition))
        try:
            self._fs.rename(future.dir, directory)
        except OSError as error:
            self._log_failed(future.dir, error)
            raise StorageError(future.dir, error) from error
        future.moved_to(directory)

    def _discard(self, log: Log) -> None:
        """`log.dir` is a `-delete` directory by now."""
        self._collect(log)
        due = self._clock.wall_ms() + self._config.log_segment_delete_delay_ms
        self._to_delete.append((due, log.dir))

    def checkpoint_move(self, *log_dirs: str) -> None:
        """After a swap: both directories' checkpoints name what lies there now. May block."""
        for log_dir in log_dirs:
            self._checkpoint(log_dir)

    def adopt_orphans(self) -> None:
        """After loading: a future log whose source was retired before a crash takes its place.

        Not while a directory is offline: the source may be there.
        """
        if self._offline:
            return
        for topic_partition, future in list(self._future.items()):
            if topic_partition in self._logs:
                continue
            _log.warning("Finishing the move of %s: only %s is left", topic_partition, future.dir)
            try:
                self._settle_name(future)
            except StorageError:
                continue
            del self._future[topic_partition]
            self._logs[topic_partition] = future
