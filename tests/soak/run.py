"""Runs the soak: a broker, clients of every kind, and a look at what is held when they have gone.

scripts/soak --minutes 60
"""

import argparse
import json
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, Self

from protocol.api_keys import ApiKey
from protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from tests.soak.kinds import KINDS, MOST_WAIT_MS, PATIENCE_S, TOPIC, ZSTD_TOPIC, Step
from tests.support.ports import free_port
from tests.support.wire_client import WireClient

LEAST_EVERY_S: Final = 300
"""Each kind gets something done in this time, or it stands still."""
BACK_S: Final = 60
"""Seconds after which all must be back."""


class Broker:
    """The process of the broker."""

    def __init__(self, directory: Path, **settings: str) -> None:
        self.port = free_port()
        self._state = directory / "state.json"
        properties = directory / "server.properties"
        lines = {
            "listeners": f"PLAINTEXT://127.0.0.1:{self.port}",
            "log.dirs": str(directory / "data"),
            "offsets.topic.replication.factor": "1",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            "message.max.bytes": "2000000",
            "socket.request.max.bytes": "4000000",
            "queued.max.request.bytes": "4000000",
            "log.retention.bytes": "200000000",
            "log.segment.bytes": "50000000",
            "log.retention.check.interval.ms": "5000",
            **settings,
        }
        properties.write_text("".join(f"{key}={value}\n" for key, value in lines.items()))
        command = [sys.executable, "-m", "tests.soak.broker", str(properties), str(self._state)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == "Listening\n"

    def note(self) -> None:
        """Have later states compared with what it holds now."""
        self.process.send_signal(signal.SIGUSR2)

    def state(self) -> dict[str, Any]:
        """Return what the broker holds, as `tests.soak.broker` writes it."""
        self._state.unlink(missing_ok=True)
        self.process.send_signal(signal.SIGUSR1)
        until = time.monotonic() + PATIENCE_S
        while not self._state.exists():
            assert time.monotonic() < until, "the broker does not answer a signal"
            time.sleep(0.01)
        state: dict[str, Any] = json.loads(self._state.read_text())
        return state

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()

    def stop(self) -> float:
        """Stop it; return the seconds that it took."""
        began = time.monotonic()
        self.process.terminate()
        assert self.process.wait(60) == 0
        return time.monotonic() - began


class Soak:
    """Clients of each kind, in threads, and what they have done."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._ends = threading.Event()
        self.done: Counter[str] = Counter()
        self.last = dict.fromkeys(KINDS, time.monotonic())
        self.failures: list[str] = []
        self._threads = [
            threading.Thread(target=self._go_on, args=(name, step), name=name, daemon=True)
            for name, step in KINDS.items()
        ]

    def begin(self) -> None:
        for thread in self._threads:
            thread.start()

    def end(self) -> None:
        self._ends.set()
        for thread in self._threads:
            thread.join(2 * PATIENCE_S)
            if thread.is_alive():
                self.failures.append(f"{thread.name} does not end")

    def _go_on(self, name: str, step: Step) -> None:
        while not self._ends.is_set():
            try:
                step(self._port)
            except Exception as error:  # noqa: BLE001 - whatever it is, it is a failure of the soak
                self.failures.append(f"{name}: {error!r}")
                self._ends.wait(1)
            else:
                self.done[name] += 1
                self.last[name] = time.monotonic()

    def standing_still(self) -> list[str]:
        """Kinds that have got nothing done for long."""
        now = time.monotonic()
        return [name for name, last in self.last.items() if now - last > LEAST_EVERY_S]


def soak(minutes: float, directory: Path) -> list[str]:
    """Run it; return what went wrong."""
    with Broker(directory) as broker:
        return _soak(minutes, broker)


def _soak(minutes: float, broker: Broker) -> list[str]:
    with WireClient(broker.port) as admin:
        topics = [
            CreatableTopic(name=name, num_partitions=1, replication_factor=1)
            for name in (TOPIC, ZSTD_TOPIC)
        ]
        admin.call(ApiKey.CREATE_TOPICS, 5, CreateTopicsRequest(topics=topics, timeout_ms=30_000))
    for step in KINDS.values():
        step(broker.port)  # each part is there that is made when it is first needed
    before = settled(broker)
    print(f"before: {before}", flush=True)
    clients = Soak(broker.port)
    clients.begin()
    ends = time.monotonic() + minutes * 60
    wrong: list[str] = []
    while (left := ends - time.monotonic()) > 0 and not wrong and broker.process.poll() is None:
        time.sleep(min(left, 60))
        state = broker.state()
        least, times = min((clients.done[name], name) for name in KINDS)
        print(
            f"{left / 60:5.1f} min left: {clients.done.total()} done, fewest {times} ({least}), "
            f"{len(clients.failures)} failed, {state['megabytes']} MB, "
            f"{state['descriptors']} descriptors, {state['connections']} connections",
            flush=True,
        )
        wrong += [f"{name} stands still" for name in clients.standing_still()]
    clients.end()
    wrong += clients.failures
    KINDS["produce opened in a child"](broker.port)
    wrong += wait_until_back(broker)
    after = broker.state()
    print(f"after: {after}\ndone: {dict(clients.done)}", flush=True)
    if after["descriptors"] > before["descriptors"]:
        wrong.append(f"{before['descriptors']} descriptors became {after['descriptors']}")
    if after["children"] != before["children"]:
        wrong.append(f"{before['children']} children became {after['children']}")
    took = broker.stop()
    print(f"stopped in {took:.1f} s", flush=True)
    return wrong


def settled(broker: Broker) -> dict[str, Any]:
    """Wait until nothing changes any more; return what it holds then, with a child process."""
    KINDS["produce opened in a child"](broker.port)
    while True:
        broker.note()
        time.sleep(2 * MOST_WAIT_MS / 1000)
        state = broker.state()
        if not state["changes"] and not state["connections"]:
            return state


def wait_until_back(broker: Broker) -> list[str]:
    """Wait until nothing more is held than at the first call; return what still is."""
    ends = time.monotonic() + BACK_S
    while True:
        state = broker.state()
        if not state["changes"] and state["connections"] == 0:
            return []
        if time.monotonic() > ends:
            return [f"{BACK_S} s later: {change}" for change in state["changes"]] + [
                f"{state['connections']} connections are left"
            ] * (state["connections"] > 0)
        time.sleep(0.5)


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="scripts/soak",
        description="Clients of every kind on one broker at once. Each kind must go on, and when "
        "they have gone, every lock, place, byte, descriptor and child must be back.",
    )
    parser.add_argument("--minutes", type=float, default=60)
    options = parser.parse_args()
    with TemporaryDirectory(prefix="pykafkalog-soak-") as directory:
        wrong = soak(options.minutes, Path(directory))
    for line in wrong[:50]:
        print(f"WRONG {line}")
    print("failed" if wrong else "passed")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
