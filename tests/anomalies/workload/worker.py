"""One client process: `python -m tests.anomalies.workload.worker JSON` (see `Job`).

The exit code is 0 after SIGTERM, and 3 if the client gave up: then a new one should take over.
"""

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random
from typing import Any, Final

from tests.anomalies.history import Recorder
from tests.anomalies.workload import roles
from tests.anomalies.workload.clients import GivenUp

GAVE_UP: Final = 3
CRASH_WITHIN_S: Final = 0.006


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A client's identity and its task."""

    role: str
    """sender, mixer, copier, poller or appender."""
    library: str
    """modern, confluent, kafka-python or aiokafka; java is another program (JavaClient.java)."""
    name: str
    """The transactional id, which all incarnations share."""
    incarnation: int
    bootstrap: str
    """Brokers; the raw client takes the first, which must be the only one."""
    history: str
    seed: int
    keys: tuple[str, ...]
    """The partitions it writes to; for a poller: those it reads."""
    inputs: tuple[str, ...] = ()
    """The partitions that a mixer or copier reads."""
    group: str | None = None
    subscribe: bool = False
    """Whether it reads as a member of `group`; otherwise its partitions are assigned."""

    @property
    def process(self) -> str:
        """The name in the history."""
        return f"{self.name}.{self.incarnation}"

    def as_argument(self) -> str:
        """Return the job as an argument of the command line."""
        return json.dumps(asdict(self))


def _job(argument: str) -> Job:
    fields = json.loads(argument)
    for name in ("keys", "inputs"):
        fields[name] = tuple(fields[name])
    return Job(**fields)


def _producer(job: Job) -> Any:
    bootstrap = job.bootstrap
    if job.library == "modern":
        from tests.anomalies.workload.raw import RawProducer, SocketLine

        port = int(bootstrap.rpartition(":")[2])
        return roles.blocking(RawProducer(SocketLine(port), job.name).open())
    if job.library == "confluent":
        from tests.anomalies.workload.confluent import ConfluentProducer

        return ConfluentProducer(bootstrap, job.name)
    if job.library == "kafka-python":
        from tests.anomalies.workload.kafka_python import KafkaPythonProducer

        return KafkaPythonProducer(bootstrap, job.name)
    from tests.anomalies.workload.aiokafka_client import AiokafkaProducer

    return AiokafkaProducer(bootstrap, job.name)


def _reader(job: Job, keys: Sequence[str], recorder: Recorder, **options: Any) -> Any:
    bootstrap = job.bootstrap

    def moved(to: Sequence[str]) -> None:
        recorder.note("assign", "ok", value=sorted(to))

    options |= {"group": job.group, "subscribe": job.subscribe}
    if job.library == "kafka-python":
        from tests.anomalies.workload.kafka_python import KafkaPythonReader

        return KafkaPythonReader(bootstrap, keys, moved, **options)
    if job.library == "aiokafka":
        from tests.anomalies.workload.aiokafka_client import AiokafkaReader

        return AiokafkaReader(bootstrap, keys, moved, **options)
    from tests.anomalies.workload.confluent import ConfluentReader

    return ConfluentReader(bootstrap, keys, moved, **options)


def run(job: Job) -> None:
    """Do the job until SIGTERM. Raises GivenUp."""
    going = [True]
    signal.signal(signal.SIGTERM, lambda *_: going.clear())
    recorder = Recorder(Path(job.history), job.process)
    random = Random(f"{job.seed} {job.process}")
    life = roles.Life(recorder, random, lambda: bool(going), _pause, lambda: _crash_soon(random))
    roles.blocking(_play(job, life, recorder))


async def _play(job: Job, life: roles.Life, recorder: Recorder) -> None:
    if job.role == "poller":
        reader = roles.Awaited(_reader(job, job.keys, recorder))
        await roles.poller(reader, life, member=job.subscribe)
        return
    values = roles.Values(job.process)
    if job.role == "appender":
        from tests.anomalies.workload.confluent import IdempotentProducer

        appending = roles.Awaited(IdempotentProducer(job.bootstrap))
        await roles.appender(appending, life, values, job.process, job.keys)
        return
    producer = _producer(job)
    awaited = producer if job.library == "modern" else roles.Awaited(producer)
    transactions = roles.Transactions(awaited, life, job.name)
    if job.role == "sender":
        await roles.sender(transactions, life, values, job.keys)
    elif job.role == "mixer":
        reader = roles.Awaited(_reader(job, job.inputs, recorder))
        await roles.mixer(transactions, reader, life, values, job.keys)
    else:
        assert job.role == "copier" and job.group is not None, job
        # Take over the transactional id before reading offsets, because that decides the last
        # owner's transaction.
        opened = _reader(job, job.inputs, recorder, from_committed=not job.subscribe)

        async def send_offsets(offsets: Mapping[str, int]) -> None:
            if job.library == "modern":
                await producer.send_offsets(job.group, offsets)
            else:
                producer.send_offsets(offsets, opened.metadata())

        await roles.copier(
            transactions,
            roles.Awaited(opened),
            send_offsets,
            life,
            values,
            job.keys,
            job.group,
        )


async def _pause(seconds: float) -> None:
    time.sleep(seconds)


def _crash_soon(random: Random) -> None:
    """Have a timer kill this process with SIGKILL."""
    within_s = random.uniform(0, CRASH_WITHIN_S)
    threading.Timer(within_s, os.kill, (os.getpid(), signal.SIGKILL)).start()


def main() -> int:
    """Run the job of the command line; return the exit code."""
    job = _job(sys.argv[1])
    try:
        run(job)
    except GivenUp as why:
        print(f"{job.process} gave up: {why}", flush=True)
        return GAVE_UP
    return 0


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    os._exit(code)  # Do not wait for the libraries' threads, nor for what they send at exit.
