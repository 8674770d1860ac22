"""Measures the start of the process to the first ApiVersions answer (target: half a second).

scripts/bench/startup.py [rounds]

PYKAFKALOG_TEST_ENVIRONMENT names an environment with an installed wheel to measure instead of this
checkout (scripts/install-wheel makes one).
"""

import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.support.installation import under_test

API_VERSIONS_V0 = bytes.fromhex("0000000a0012000000000001ffff")


def one_start(directory: Path, port: int) -> float:
    """Start a broker, stop it, and return the seconds until its first answer."""
    used = under_test()
    begin = time.perf_counter()
    process = subprocess.Popen(
        [
            *(*used.broker(), str(directory / "server.properties")),
            *("--override", f"listeners=PLAINTEXT://127.0.0.1:{port}"),
        ],
        cwd=used.directory,
        env=used.process_environment(),
        stdout=subprocess.DEVNULL,
    )
    try:
        while True:
            try:
                with socket.create_connection(("127.0.0.1", port), 5) as client:
                    client.sendall(API_VERSIONS_V0)
                    if client.recv(4):
                        return time.perf_counter() - begin
            except OSError:
                time.sleep(0.002)
            assert process.poll() is None, "the broker ended"
    finally:
        process.terminate()
        process.wait(30)


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 7
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        (directory / "server.properties").write_text(f"broker.id=1\nlog.dirs={name}/logs\n")
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        first = one_start(directory, port)
        times = sorted(one_start(directory, port) for _ in range(rounds))
    print(
        f"new directory {first * 1000:.0f} ms; then median {statistics.median(times) * 1000:.0f} ms"
        f", best {times[0] * 1000:.0f} ms, worst {times[-1] * 1000:.0f} ms of {rounds}"
    )


if __name__ == "__main__":
    main()
