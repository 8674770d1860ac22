"""The history of clients: a JSON object per line, written before and after each step.

Every client process has a file of its own (a killed one leaves a history that just ends); a history
is all of them, sorted by time. All run on one machine: `time` is its monotonic clock, nanoseconds.

    {"time": 5, "process": "a.1", "f": "txn", "type": "invoke", "op": 1,
     "transactional_id": "a", "group": "g",
     "value": [["poll", {"in-0": [[7, "x"]]}], ["send", "out-1", "y"]]}
    {"time": 6, "process": "a.1", "f": "txn", "type": "committing", "op": 1, "acks": {"y": 12}}
    {"time": 7, "process": "a.1", "f": "txn", "type": "ok", "op": 1}

A key is a partition: `topic-number`. A value is written once in a history. The events:

    txn invoke      before the first send, with all that will be sent. `group`: the polls' offsets
                    are committed in the transaction. `plain`: a record of an idempotent producer
                    without transactions, whose records lie in the order in which they were sent
    txn committing  before the client sends EndTxn to commit, with the offsets of its sends
    txn ok          committed. `acks` may follow here too
    txn fail        known not to be committed: it was aborted, or failed before the client tried to
                    commit
    txn info        the client tried to commit, and does not know the outcome: as if it had no end
    poll ok         `value`: {key: [[offset, value], …]} in the order of the answer, read_committed
    assign ok       `value`: the keys the consumer reads from now on, anywhere: earlier polls
                    say nothing about later ones
    crash info      the process is about to kill itself in the middle of a commit
    final ok        read_committed from the first to the last offset when all clients were done:
                    `value` as poll, `stable` and `ends`: {key: offset} of LSO and log end,
                    `resent`: {key: [value, …]} (`resent`)

A transaction that was invoked and has neither `committing` nor an end was not committed.
"""

import json
import os
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

SUFFIX: Final = ".jsonl"


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One line."""

    time: int
    process: str
    f: str
    type: str
    op: int = -1
    """The number of the process's operation; -1 if no other event refers to it."""
    more: Mapping[str, Any] = field(default_factory=dict)
    """The fields of this kind of event."""


class HistoryFormatError(ValueError):
    """A line is no event; file and line number are in the text."""


class Recorder:
    """Writes one process's events; each line is with the operating system when the call returns."""

    def __init__(self, directory: Path, process: str) -> None:
        self.process = process
        path = directory / f"{process}{SUFFIX}"
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        self._ops = 0

    def note(self, f: str, kind: str, *, op: int = -1, **more: Any) -> None:
        """Write an event, with the time of now."""
        line = {"time": time.monotonic_ns(), "process": self.process, "f": f, "type": kind}
        if op >= 0:
            line["op"] = op
        data = json.dumps({**line, **more}, separators=(",", ":")).encode() + b"\n"
        os.write(self._fd, data)

    def next_op(self) -> int:
        """Return a number for an operation of more than one event."""
        self._ops += 1
        return self._ops

    def close(self) -> None:
        """Close the file."""
        os.close(self._fd)


def parse_line(line: str) -> Event:
    """Parse a line. Raises ValueError, KeyError or TypeError."""
    fields = json.loads(line)
    known = {name: fields.pop(name) for name in ("time", "process", "f", "type")}
    return Event(**known, op=fields.pop("op", -1), more=fields)


def _events(path: Path) -> Iterator[Event]:
    lines = path.read_text().split("\n")
    for number, line in enumerate(lines, 1):
        if not line:
            continue
        try:
            yield parse_line(line)
        except (ValueError, KeyError, TypeError) as error:
            if number == len(lines):
                return  # Its process was killed while it wrote the line.
            raise HistoryFormatError(f"{path}:{number}: {error!r}") from error


def read_history(where: Path) -> list[Event]:
    """Read the events of a file, or of a directory's, by time. Raises HistoryFormatError."""
    paths = sorted(where.glob(f"*{SUFFIX}")) if where.is_dir() else [where]
    return in_order(event for path in paths for event in _events(path))


def in_order(events: Iterable[Event]) -> list[Event]:
    """Sort events by time; those of one process stay in their order."""
    return sorted(events, key=lambda event: event.time)
