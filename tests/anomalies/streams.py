"""The reads of one consumer between two changes of its place: no step back, nothing left out.

    non-monotonic poll   an offset at or below the one before it
    skipped poll         between two offsets lies a value that is known to be committed. A gap alone
                         is none: markers and aborted values take offsets
    intermediate read    (G1b) the value passed over belongs to a transaction of which the same
                         reader saw another value in the same partition

Within one answer they are called internal. Assignments, seeks and rebalances begin a new stream
(history: `assign`), as Jepsen does not compare across them either.
"""

import itertools
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator

from tests.anomalies.findings import Anomaly, Finding
from tests.anomalies.model import History, Poll, Transaction

Step = tuple[int, str, Poll]


def check_streams(history: History) -> Iterator[Finding]:
    """All streams, and the final read as one more."""
    streams: dict[tuple[str, int, str], list[Step]] = defaultdict(list)
    for poll in history.polls:
        for key, pairs in poll.values.items():
            streams[poll.process, poll.stream, key] += [(*pair, poll) for pair in pairs]
    final = history.final
    if final is not None:
        last = Poll(process="the final reader", time=final.time, stream=0, values=final.values)
        for key, pairs in final.values.items():
            streams[last.process, 0, key] = [(*pair, last) for pair in pairs]
    for (_, _, key), steps in streams.items():
        yield from _check_stream(history, key, steps)


def _check_stream(history: History, key: str, steps: list[Step]) -> Iterator[Finding]:
    log = history.committed_log.get(key, [])
    offsets = [entry[0] for entry in log]
    seen = {value for _, value, _ in steps}
    for (low, before, poll), (high, value, following) in itertools.pairwise(steps):
        internal = poll is following
        where = (str(poll),) if internal else (str(poll), str(following))
        if high <= low:
            yield Finding(
                anomaly=(
                    Anomaly.INTERNAL_NONMONOTONIC_POLL if internal else Anomaly.NONMONOTONIC_POLL
                ),
                what=f"{following.process} read {key}@{high}={value} after @{low}={before}",
                evidence=where,
            )
            continue
        skipped = [
            entry
            for entry in log[bisect_right(offsets, low) : bisect_left(offsets, high)]
            if entry[1] not in seen
        ]
        if not skipped:
            continue
        missing = ", ".join(f"@{offset}={one}" for offset, one, _ in skipped[:5])
        yield Finding(
            anomaly=Anomaly.INTERNAL_SKIPPED_POLL if internal else Anomaly.SKIPPED_POLL,
            what=(
                f"{following.process} read {key}@{low}, then @{high}, and passed over "
                f"{len(skipped)} committed: {missing}"
            ),
            evidence=(*where, *(writer.describe() for _, _, writer in skipped[:3])),
        )
        torn = {id(writer): writer for _, _, writer in skipped if _in_part(writer, key, seen)}
        for writer in torn.values():
            yield Finding(
                anomaly=Anomaly.INTERMEDIATE_READ,
                what=f"{following.process} saw a part of what {writer} wrote to {key}",
                evidence=(*where, writer.describe()),
            )


def _in_part(writer: Transaction, key: str, seen: set[str]) -> bool:
    return any(write.key == key and write.value in seen for write in writer.writes)
