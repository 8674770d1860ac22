"""Flink, exactly once: totals by account in transactions that checkpoints commit, over kills.

After a kill -9 the job starts from its last checkpoint. It commits again what that checkpoint had
prepared, by resuming the transaction with the producer id and epoch that it had stored; what came
after is aborted by InitProducerId of the transactional ids that it may have used.
"""

import random
from collections import defaultdict
from pathlib import Path

import pytest

from tests.support.ecosystem.jars import compiled, jars
from tests.support.ecosystem.processes import ProgramProcess
from tests.support.ecosystem.records import PATIENCE_S, Found, Tail, send
from tests.support.either_broker import EitherBroker
from tests.support.kafka_jars import LOGGING, SHORT_LIVED
from tests.support.topics import make_topic

SOURCE = Path(__file__).parent / "programs/Totals.java"
RECORDS, ACCOUNTS, PARTITIONS = 6000, 40, 2


@pytest.fixture(scope="module")
def classpath(tmp_path_factory: pytest.TempPathFactory) -> str:
    return compiled(SOURCE, jars("flink"), tmp_path_factory.mktemp("classes"))


class Job(ProgramProcess):
    """The job and its cluster in one process, started from its newest complete checkpoint."""

    def __init__(self, directory: Path, classpath: str, bootstrap: str) -> None:
        super().__init__(directory, (), name="flink")
        self.checkpoints = directory / "checkpoints"
        self._fixed = [
            *("java", "-Xmx640m", *SHORT_LIVED, *LOGGING),
            *("--add-opens=java.base/java.util=ALL-UNNAMED", "-cp", classpath),
            *("Totals", bootstrap, str(self.checkpoints)),
        ]

    def start(self) -> "Job":
        self.words = [*self._fixed, self._newest()]
        super().start()
        return self

    def _newest(self) -> str:
        complete = self.checkpoints.glob("*/chk-*/_metadata")
        newest = max(complete, key=lambda path: path.stat().st_mtime_ns, default=None)
        return "none" if newest is None else str(newest.parent)


def running_totals(lines: list[str]) -> dict[str, list[str]]:
    """Return the expected output: by account, count and total after each of its amounts."""
    expected = defaultdict(list)
    totals: dict[str, int] = defaultdict(int)
    for line in lines:
        account, amount = line.split()
        totals[account] += int(amount)
        expected[account].append(f"{account} {len(expected[account]) + 1} {totals[account]}")
    return dict(expected)


def by_account(records: list[Found]) -> dict[str, list[str]]:
    found = defaultdict(list)
    for record in records:
        found[(record.key or b"").decode()].append((record.value or b"").decode())
    return dict(found)


def test_totals_are_exact_over_kills_of_job_and_broker(
    broker: EitherBroker, classpath: str, tmp_path: Path
) -> None:
    draw = random.Random(12)
    lines = [f"account{draw.randrange(ACCOUNTS)} {draw.randrange(1000)}" for _ in range(RECORDS)]
    # An account's amounts lie in one partition, by its key: their order is kept all the way.
    records = [(line.split()[0].encode(), line.encode()) for line in lines]
    make_topic(broker.bootstrap, "in", "out", partitions=PARTITIONS)
    third = RECORDS // 3
    with (
        Job(tmp_path / "flink", classpath, broker.bootstrap) as job,
        Tail(broker.bootstrap, "out", PARTITIONS) as out,
        Tail(broker.bootstrap, "out", PARTITIONS, "read_uncommitted") as uncommitted,
    ):
        send(broker.bootstrap, "in", records[:third])
        job.wait_until(out.at_least(third // 2), PATIENCE_S, "a checkpoint committed totals")
        send(broker.bootstrap, "in", records[third : third + third // 2])
        written = third + third // 4
        job.wait_until(uncommitted.at_least(written), PATIENCE_S, "totals are written")
        job.kill()
        send(broker.bootstrap, "in", records[third + third // 2 : 2 * third])
        job.start()
        job.wait_until(out.at_least(2 * third), PATIENCE_S, "it goes on after a kill")
        send(broker.bootstrap, "in", records[2 * third : 2 * third + third // 2])
        written = len(uncommitted.records) + third // 4
        job.wait_until(uncommitted.at_least(written), PATIENCE_S, "totals are written again")
        broker.kill()
        broker.start()
        send(broker.bootstrap, "in", records[2 * third + third // 2 :])
        job.wait_until(out.at_least(RECORDS), PATIENCE_S, "all totals are committed")
        job.stop()
        out.nothing_more()
        assert by_account(out.records) == running_totals(lines)
