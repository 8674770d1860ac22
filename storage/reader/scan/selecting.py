"""Selects the partition directories of a request."""

import re

from protocol.types import TopicPartition
from storage.filesystem import FileSystem
from storage.paths import DirState, file_name, parse_partition_dir
from storage.reader.log_dir import LogDirView
from storage.reader.partition import PartitionView
from storage.reader.scan.errors import NoLogDirectory, ScanError, UnknownTopic
from storage.reader.scan.request import ScanRequest

_INTERNAL = "__"


def partitions_in(directories: tuple[str, ...], fs: FileSystem) -> dict[TopicPartition, str]:
    """Return the live partitions of log or partition directories, with their directories.

    Raises NoLogDirectory, also if one partition is in two of them.
    """
    found: dict[TopicPartition, str] = {}
    for directory in directories:
        for view in _views(directory, fs):
            where = view.topic_partition
            if where is None or view.state is not DirState.LIVE:
                continue
            other = found.setdefault(where, view.directory)
            if other != view.directory:
                raise NoLogDirectory(directory, f"{where} is in {other} as well")
    return found


def _views(directory: str, fs: FileSystem) -> list[PartitionView]:
    try:
        if parse_partition_dir(file_name(directory.rstrip("/"))) is not None:
            view = PartitionView(directory, fs)
            if view.segments():
                return [view]
        log_dir = LogDirView(directory, fs)
        if log_dir.is_log_dir:
            return log_dir.partitions()
    except OSError as error:
        raise NoLogDirectory(directory, error.strerror or str(error)) from None
    raise NoLogDirectory(directory, "is no log directory: it holds no partitions")


def select(request: ScanRequest, fs: FileSystem) -> list[tuple[TopicPartition, str]]:
    """Return the partitions of the request with their directories, sorted.

    Raises UnknownTopic, NoLogDirectory; ScanError for an invalid pattern.
    """
    there = partitions_in(request.directories, fs)
    topics = sorted({where.topic for where in there})
    if request.assign is not None:
        for where in request.assign:
            if where not in there:
                raise UnknownTopic(str(where), request.directories, topics)
        chosen = set(request.assign)
    elif request.topics is not None:
        for name in request.topics:
            if name not in topics:
                raise UnknownTopic(name, request.directories, topics)
        chosen = {where for where in there if where.topic in request.topics}
    elif request.pattern is not None:
        try:
            pattern = re.compile(request.pattern)
        except re.error as error:
            raise ScanError(f"{request.pattern!r} is no pattern of topics: {error}") from None
        chosen = {where for where in there if pattern.fullmatch(where.topic)}
    else:
        chosen = {where for where in there if not where.topic.startswith(_INTERNAL)}
    return sorted((where, there[where]) for where in chosen)
