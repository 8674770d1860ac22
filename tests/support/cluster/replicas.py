"""Are the replicas of a partition the same bytes, batch by batch, with the same leader epochs?

Segments may end at different places, and the logs may begin at different offsets; batches may not
differ. Only the log up to the least end of all replicas is compared: what lies above the high
watermark may be cut off yet. `whole=True` wants equal ends too, as they are when all is at rest.

Replicas of a compacted topic lack different records, because each broker cleans its logs when it
comes to it. They are judged by `compacted_replicas`.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from protocol.records.batch import iter_batches
from protocol.records.header import BatchHeader
from tests.support.cluster.compacted_replicas import compacted_differences

LogDirs = Mapping[int, Sequence[Path]]
"""Broker id to its log directories."""
_SUFFIX = ".log"


@dataclass(frozen=True, slots=True)
class _Replica:
    batches: dict[int, bytes]
    """Base offset to the bytes of the batch, in order."""
    end: int
    """The offset after the last record."""


def partitions_of(log_dir: Path) -> set[str]:
    """Names of the partition directories, without those that are being deleted or moved."""
    if not log_dir.is_dir():
        return set()
    return {
        path.name
        for path in log_dir.iterdir()
        if path.is_dir() and path.name.rpartition("-")[2].isdigit()
    }


def differences(
    log_dirs: LogDirs, *, whole: bool = False, most: int = 10, compacted: Collection[str] = ()
) -> list[str]:
    """Return the first `most` sentences about replicas that differ, by broker id.

    `compacted`: topics that brokers clean.
    """
    return list(islice(_differences(log_dirs, compacted, whole=whole), most))


def compared_batches(log_dirs: LogDirs) -> int:
    """How many batches there are, so that a test knows that it compared something."""
    return sum(
        len(_replica(log_dir / name).batches)
        for of_one in log_dirs.values()
        for log_dir in of_one
        for name in partitions_of(log_dir)
    )


def _differences(log_dirs: LogDirs, compacted: Collection[str], *, whole: bool) -> Iterator[str]:
    every = [log_dir for of_one in log_dirs.values() for log_dir in of_one]
    names = set[str]().union(*map(partitions_of, every))
    for name in sorted(names):
        replicas = {
            broker: _replica(log_dir / name)
            for broker, of_one in log_dirs.items()
            for log_dir in of_one
            if (log_dir / name).is_dir()
        }
        if len(replicas) < 2:
            continue
        ends = {broker: replica.end for broker, replica in replicas.items()}
        are_equal = len(set(ends.values())) == 1
        if whole and not are_equal:
            yield f"{name}: ends {ends}"
        if name.rpartition("-")[0] in compacted:
            found = {broker: replica.batches.values() for broker, replica in replicas.items()}
            yield from compacted_differences(name, found, whole=are_equal)
        else:
            yield from _of_one(name, replicas, min(ends.values()))


def _of_one(name: str, replicas: Mapping[int, _Replica], least: int) -> Iterator[str]:
    first = max(min(replica.batches, default=0) for replica in replicas.values())
    (broker, oracle), *others = replicas.items()
    wanted = _between(oracle, first, least)
    for other, replica in others:
        found = _between(replica, first, least)
        for offset in sorted(wanted.keys() | found.keys()):
            if wanted.get(offset) != found.get(offset):
                yield (
                    f"{name} at {offset}: broker {broker} has {_shown(wanted.get(offset))}, "
                    f"broker {other} has {_shown(found.get(offset))}"
                )
                break


def _between(replica: _Replica, first: int, end: int) -> dict[int, bytes]:
    return {offset: data for offset, data in replica.batches.items() if first <= offset < end}


def _replica(directory: Path) -> _Replica:
    batches: dict[int, bytes] = {}
    end = 0
    for path in sorted(directory.glob(f"*{_SUFFIX}")):
        end = max(end, int(path.stem))  # A cleaner may have left nothing before it.
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            continue  # Deleted meanwhile.
        for at, header in iter_batches(data):
            batches[header.base_offset] = data[at : at + header.size]
            end = header.last_offset + 1
    return _Replica(batches, end)


def _shown(data: bytes | None) -> str:
    if data is None:
        return "no batch"
    header: BatchHeader = next(header for _, header in iter_batches(data))
    return (
        f"a batch of epoch {header.partition_leader_epoch}, offsets {header.base_offset} to "
        f"{header.last_offset}, {header.size} bytes, crc {header.crc:#x}"
    )
