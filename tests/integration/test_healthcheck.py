"""The image's health check against a real broker, wherever it listens."""

import subprocess
import sys
from pathlib import Path

from tests.support.broker_process import BrokerProcess
from tests.support.installation import CHECKOUT, under_test
from tools.healthcheck import answers, brokers, listening

TWO_LISTENERS = {
    "listeners": "INSIDE://127.0.0.1:0,OUTSIDE://127.0.0.1:0",
    "listener.security.protocol.map": "INSIDE:PLAINTEXT,OUTSIDE:PLAINTEXT",
    "inter.broker.listener.name": "INSIDE",
    "metrics.http.listener": "127.0.0.1:0",
}


def test_every_listener_of_a_broker_is_found_and_asked(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path, TWO_LISTENERS) as broker:
        found = listening(broker.pid)
        healthy = {address for address in found if answers(address)}
        assert broker.bootstrap in healthy
        assert len(found) == 3, found
        assert len(healthy) == 2, "the one for metrics is no Kafka broker"
        if under_test() is not CHECKOUT:  # there it is not called pykafkalog-broker
            assert broker.pid in list(brokers())
    assert not [address for address in found if answers(address)]


def test_the_command_ends_with_0_when_the_broker_answers_and_with_1_when_it_is_gone(
    tmp_path: Path,
) -> None:
    used = under_test()

    def check(address: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [used.python, "-m", f"{used.package}tools.healthcheck", address],
            cwd=used.directory,
            env=used.process_environment(),
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )

    with BrokerProcess(tmp_path) as broker:
        assert check(broker.bootstrap).returncode == 0
    gone = check(broker.bootstrap)
    assert (gone.returncode, gone.stdout) == (1, f"unhealthy: no answer at {broker.bootstrap}\n")


def test_without_an_address_a_process_of_that_name_is_looked_for(tmp_path: Path) -> None:
    program = tmp_path / "pykafkalog-broker"
    program.write_text("print(flush=True)\ninput()\n")
    with subprocess.Popen(
        [sys.executable, str(program)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()  # before it runs, /proc may not have its command line yet
        assert process.pid in list(brokers())
        process.communicate(b"\n")
