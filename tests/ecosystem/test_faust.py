"""Faust: tables with changelogs, which a restarted worker reads back; and a kill of the broker."""

import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.support.ecosystem.environments import python
from tests.support.ecosystem.processes import ProgramProcess
from tests.support.ecosystem.records import PATIENCE_S, Found, Tail, send
from tests.support.either_broker import EitherBroker
from tests.support.topics import make_topic

PROGRAM = Path(__file__).parent / "programs/faust_counter.py"
RECORDS, KEYS, PARTITIONS = 2000, 20, 2


@pytest.fixture
def worker(broker: EitherBroker, tmp_path: Path) -> ProgramProcess:
    make_topic(broker.bootstrap, "in", "out", partitions=PARTITIONS)
    return ProgramProcess(
        tmp_path / "faust",
        [python("faust"), str(PROGRAM), "worker", "-l", "warn", "--without-web"],
        environment={
            "BOOTSTRAP": broker.bootstrap,
            "SOURCE": "in",
            "TARGET": "out",
            "PARTITIONS": str(PARTITIONS),
        },
    )


def records_of(numbers: Iterable[int]) -> list[tuple[bytes, bytes]]:
    return [(b"key%d" % (number % KEYS), b"%d" % number) for number in numbers]


def values(records: list[Found]) -> list[tuple[int, int]]:
    return [(said["id"], said["count"]) for said in (json.loads(r.value or b"") for r in records)]


def last_counts(records: list[Found]) -> dict[bytes | None, int]:
    return {record.key: json.loads(record.value or b"")["count"] for record in records}


def test_a_restarted_worker_reads_its_table_back(
    broker: EitherBroker, worker: ProgramProcess
) -> None:
    half = RECORDS // 2
    with worker, Tail(broker.bootstrap, "out", PARTITIONS) as out:
        send(broker.bootstrap, "in", records_of(range(half)))
        worker.wait_until(out.at_least(half), PATIENCE_S, "the first half is counted")
        worker.stop()
        worker.start()
        send(broker.bootstrap, "in", records_of(range(half, RECORDS)))
        worker.wait_until(out.at_least(RECORDS), PATIENCE_S, "the second half is counted")
        worker.stop()
        out.nothing_more()
        assert sorted(said for said, _ in values(out.records)) == list(range(RECORDS))
        keys = Counter(key for key, _ in records_of(range(RECORDS)))
        assert last_counts(out.records) == dict(keys)


def test_a_worker_loses_nothing_when_the_broker_is_killed(
    broker: EitherBroker, worker: ProgramProcess
) -> None:
    """Faust promises at least once: records may be counted twice, none may be left out."""
    half = RECORDS // 2

    def all_there(records: list[Found]) -> bool:
        return {said for said, _ in values(records)} == set(range(RECORDS))

    with worker, Tail(broker.bootstrap, "out", PARTITIONS) as out:
        send(broker.bootstrap, "in", records_of(range(half)))
        worker.wait_until(out.at_least(half // 4), PATIENCE_S, "it counts")
        broker.kill()
        broker.start()
        send(broker.bootstrap, "in", records_of(range(half, RECORDS)))
        worker.wait_until(out.has(all_there), PATIENCE_S, "all are counted")
        keys = Counter(key for key, _ in records_of(range(RECORDS)))
        assert all(last_counts(out.records)[key] >= count for key, count in keys.items())
