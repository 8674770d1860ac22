"""The client of the bench: frames that Python built, sent by FrameLoad.java, which stays warm.

    load = Load(directory)
    figures = load.run("load", frames, port=…, pid=…, connections=64, inflight=1, seconds=3, warm=1)

The client costs some microseconds of its own per request (`client_cpu` says how many), where a
client in Python would cost more than the broker. Modes and figures: FrameLoad.java.
"""

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from protocol.api_keys import ApiKey
from tests.support.wire_client import read_response

PROGRAM = Path(__file__).with_name("FrameLoad.java")


class Load:
    """A process that sends; several are there for loads beside each other."""

    def __init__(self, directory: Path, number: int) -> None:
        self._frames = directory / f"frames-{number}"
        self._process = subprocess.Popen(
            # A thread for each connection needs little; the heap holds latencies.
            ["java", "-Xmx512m", "-XX:+UseSerialGC", str(PROGRAM)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._running = False

    def start(self, mode: str, frames: Sequence[bytes], **words: Any) -> None:
        """Begin a run, for `finish` to wait for."""
        if self._running:  # of a case that failed
            self._figures()
        self._frames.write_bytes(b"".join(frames))
        given = {"frames": self._frames, **words}
        assert self._process.stdin is not None
        told = " ".join([mode, *(f"{name}={value}" for name, value in given.items())])
        self._process.stdin.write(f"{told}\n")
        self._process.stdin.flush()
        self._running = True

    def finish(self, *, same_size: bool = True) -> dict[str, Any]:
        """Return the figures of the run that was begun.

        `same_size`: raise RuntimeError if replies differ in size, as one with an error does.
        """
        figures = self._figures()
        if "error" in figures:
            raise RuntimeError(figures["error"])
        if not figures.get("requests", 1):
            raise RuntimeError("no request was answered: measure for longer")
        if same_size and figures.get("odd"):
            raise RuntimeError(f"{figures['odd']} replies are of another size than the others")
        return figures

    def _figures(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        self._running = False
        figures: dict[str, Any] = json.loads(line or '{"error": "FrameLoad ended"}')
        return figures

    def run(self, mode: str, frames: Sequence[bytes], **words: Any) -> dict[str, Any]:
        """Begin a run and wait for its figures."""
        self.start(mode, frames, **words)
        return self.finish()

    def stop(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.wait()


def check_reply(figures: dict[str, Any], key: ApiKey, version: int) -> None:
    """Raise RuntimeError if the last reply has an error."""
    _, response = read_response(key, version, bytes.fromhex(figures["reply"]))
    refuse_errors(response)


def refuse_errors(response: Any) -> None:
    """Raise RuntimeError if there is an error code in the response, at any depth."""
    if isinstance(response, list):
        for part in response:
            refuse_errors(part)
        return
    for name in getattr(response, "__slots__", ()):
        value = getattr(response, name)
        if name.endswith("error_code") and value:
            raise RuntimeError(f"{type(response).__name__}: {name} is {value}")
        refuse_errors(value)
