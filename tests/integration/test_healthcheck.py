"""The image's health check against a real broker, wherever it listens."""

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

    with BrokerProcess(tmp_path) as broker:
        check = [used.python, "-m", f"{used.package}tools.healthcheck", broker.bootstrap]
        used.run(check)
    gone = used.run(check, check=False)
    assert (gone.returncode, gone.stdout) == (1, f"unhealthy: no answer at {broker.bootstrap}\n")
