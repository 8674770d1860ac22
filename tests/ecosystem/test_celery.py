"""Celery on Kafka (kombu's confluentkafka transport): each task that was sent has its result."""

import json
import subprocess
from pathlib import Path

from tests.support.ecosystem.environments import environment
from tests.support.ecosystem.processes import ProgramProcess
from tests.support.ecosystem.records import PATIENCE_S
from tests.support.either_broker import EitherBroker

PROGRAMS = Path(__file__).parent / "programs"
TASKS = 120


class Queue:
    """Sends tasks, and sees what has become of them."""

    def __init__(self, bootstrap: str, directory: Path) -> None:
        self.results = directory / "results"
        self.results.mkdir(parents=True)
        self.environment = {
            "BOOTSTRAP": bootstrap,
            "RESULTS": str(self.results),
            "PYTHONPATH": str(PROGRAMS),
        }
        self.bin = environment("celery") / "bin"

    def send(self, begin: int, end: int) -> None:
        """Tasks with the numbers from `begin` to before `end`."""
        subprocess.run(
            [self.bin / "python", "-m", "celery_tasks", str(begin), str(end)],
            env=self.environment,
            check=True,
            timeout=PATIENCE_S,
        )

    def done(self) -> dict[str, object]:
        """Return the results of the tasks that have one, by task id."""
        found = [json.loads(path.read_text() or "{}") for path in self.results.glob("*task-*")]
        return {one["task_id"]: one["result"] for one in found if one.get("status") == "SUCCESS"}


def test_each_task_has_its_result_over_kills_of_worker_and_broker(
    broker: EitherBroker, tmp_path: Path
) -> None:
    queue = Queue(broker.bootstrap, tmp_path / "queue")
    words = [str(queue.bin / "celery"), "-A", "celery_tasks", "worker", "-P", "solo"]
    third = TASKS // 3
    with ProgramProcess(
        tmp_path / "celery",
        [*words, "--loglevel", "warning", "--without-gossip", "--without-mingle"],
        environment=queue.environment,
    ) as worker:

        def until_done(count: int) -> None:
            what = f"{count} tasks are done"
            worker.wait_until(lambda: len(queue.done()) >= count, PATIENCE_S, what)

        queue.send(0, third)
        until_done(third // 4)
        worker.kill()
        worker.start()
        until_done(third)
        queue.send(third, 2 * third)
        until_done(third + third // 4)
        broker.kill()
        broker.start()
        queue.send(2 * third, TASKS)
        until_done(TASKS)
        assert queue.done() == {f"task-{number}": number * number for number in range(TASKS)}
