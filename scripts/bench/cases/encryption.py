"""TLS: Kafka's performance tools over it, and handshakes per second.

Each side is another broker of its form, with a TLS listener beside the plain one; all have the same
certificate, of P-256 or of RSA.
"""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sides import Side

from cases import Bench, Figures, Measure, case
from cases.tools import MB, consumed, produced
from tests.support.certificates import write_rsa
from tests.support.tls_brokers import encrypt, tls_port, write_client_file

PROGRAM = Path(__file__).resolve().parents[1] / "handshakes.py"
CLIENTS = 8
OPTIMIZING = ("-XX:TieredStopAtLevel=4",)
"""An option of the clients' JVM: without its optimizing compiler it encrypts a tenth as fast, and
the figures would be the client's only."""


@contextmanager
def encrypted(side: Side, key: str) -> Iterator[tuple[Side, Path]]:
    """Another broker of a side, with TLS; and the settings of its clients."""
    paths: list[Path] = []

    def prepare(made: Side) -> None:
        directory = made.directory / "tls"
        files = encrypt(made.broker, directory)
        if key == "RSA":
            write_rsa(Path(files["broker"]))
        paths.append(write_client_file(directory / "client.properties", files))

    with side.other(prepare) as made:
        yield made, paths[0]


def perf(bench: Bench, side: Side, size: int, batch: int) -> Iterator[Measure]:
    """Produced and consumed over TLS, as in tools/: four partitions, acks=all, linger 5 ms."""
    count = bench.megabytes * MB // size
    with encrypted(side, "P-256") as (made, file):
        at = f"127.0.0.1:{tls_port(made.broker)}"
        words = ("--command-property", f"batch.size={batch}", "linger.ms=5")

        def measure() -> Figures:
            with made.topics(1, 4) as (topic,):
                settings = ("--command-config", str(file))
                how = {"at": at, "options": OPTIMIZING}
                told = produced(made, topic, size, count, *words, *settings, **how)
                return {**told, **consumed(made, topic, size, count, "consume", *settings, **how)}

        yield measure


def handshakes(bench: Bench, side: Side, key: str) -> Iterator[Measure]:
    """Clients that connect, ask once and close, in TLS 1.3, without sessions to resume."""
    with encrypted(side, key) as (made, _):

        def measure() -> Figures:
            before = made.cpu_seconds()
            words = [str(PROGRAM), str(tls_port(made.broker)), str(bench.seconds), str(CLIENTS)]
            told = subprocess.run(
                [sys.executable, *words], check=True, capture_output=True, text=True
            ).stdout.split()
            count, client = int(told[0]), float(told[1])
            return {
                "handshakes/s": count / bench.seconds,
                "CPU us/handshake": (made.cpu_seconds() - before) / count * 1e6,
                "client CPU us/handshake": client / count * 1e6,
            }

        yield measure


CASES = {
    "encryption/1024 B x 16 KB": case(perf, 1024, 16384),
    "encryption/1024 B x 256 KB": case(perf, 1024, 262144),
    "encryption/handshakes, P-256": case(handshakes, "P-256"),
    "encryption/handshakes, RSA 2048": case(handshakes, "RSA"),
}
