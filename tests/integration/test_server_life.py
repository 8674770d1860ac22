"""How a broker starts and ends, as an operator sees it (S-START-1 to S-START-7)."""

import re
import signal
import socket
import subprocess
import time
import urllib.request
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from prometheus_client.parser import text_string_to_metric_families

from protocol.api_keys import ApiKey
from tests.support.broker_process import BrokerProcess
from tests.support.installation import under_test
from tests.support.ports import free_port
from tests.support.wire_client import WireClient, request_frame


def failing_start(*arguments: str) -> tuple[str, str]:
    """Return standard output and standard error of a broker that must not start."""
    used = under_test()
    done = used.run([*used.broker(), *arguments], check=False)
    assert done.returncode == 1
    assert "Traceback" not in done.stdout + done.stderr
    return done.stdout, done.stderr


def meta(broker: BrokerProcess) -> dict[str, str]:
    lines = (broker.log_dir / "meta.properties").read_text().splitlines()
    return dict(line.split("=", 1) for line in lines if "=" in line)


def api_versions(broker: BrokerProcess) -> int:
    with WireClient(broker.port) as client:
        return int(client.call(ApiKey.API_VERSIONS, 0).error_code)


def test_s_start_5_sigterm_leaves_everything_in_order(tmp_path: Path) -> None:
    broker = BrokerProcess(tmp_path).start()
    assert api_versions(broker) == 0
    broker.stop()
    files = {path.name for path in broker.log_dir.iterdir()}
    assert {".kafka_cleanshutdown", "meta.properties", "recovery-point-offset-checkpoint"} <= files
    assert "shut down completed" in broker.output()
    assert not subprocess.run(
        ["fuser", broker.log_dir / ".lock"], check=False, capture_output=True
    ).stdout


def test_sigint_is_a_clean_stop_too(tmp_path: Path) -> None:
    broker = BrokerProcess(tmp_path).start()
    assert broker.process is not None
    broker.process.send_signal(signal.SIGINT)
    assert broker.process.wait(20) == 0
    assert (broker.log_dir / ".kafka_cleanshutdown").exists()


def test_s_rec_1_a_kill_is_followed_by_recovery(tmp_path: Path) -> None:
    broker = BrokerProcess(tmp_path).start()
    broker.kill()
    assert not (broker.log_dir / ".kafka_cleanshutdown").exists()
    broker.start()
    assert "Recovering" in broker.output()
    broker.restart()
    assert "Skipping recovery" in broker.output()
    broker.stop()


def test_s_rec_7_two_brokers_cannot_share_a_directory(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path) as broker:
        output = failing_start(
            str(broker.properties), "--override", "listeners=PLAINTEXT://127.0.0.1:0"
        )
        assert "Failed to acquire lock on file .lock" in "".join(output)
        assert api_versions(broker) == 0


def test_a_failed_start_says_why_in_the_last_line_of_standard_error(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    with BrokerProcess(tmp_path) as broker:
        for overrides, told in (
            ({"listeners": f"PLAINTEXT://127.0.0.1:{broker.port}"}, "Address already in use. Is"),
            ({"log.dirs": str(broker.log_dir)}, "is using this directory. Stop it, or take"),
            ({"log.dirs": str(file)}, "can be created or validated: [Errno 20] Not a directory"),
            ({"log.dirs": "/proc/no"}, "can be created or validated: [Errno 2] No such file"),
            ({"num.io.threads": "many"}, "Invalid value many for configuration num.io.threads"),
        ):
            settings = {"log.dirs": str(tmp_path / "own"), "listeners": "PLAINTEXT://127.0.0.1:0"}
            words = [f"--override={k}={v}" for k, v in {**settings, **overrides}.items()]
            (line,) = failing_start(str(broker.properties), *words)[1].splitlines()
            assert line.startswith("pykafkalog-broker: ")
            assert told in line


def test_s_start_2_a_port_in_use_ends_the_start_and_frees_everything(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        properties = tmp_path / "server.properties"
        properties.write_text(
            f"broker.id=1\nlog.dirs={tmp_path}/kafka-logs\nlisteners=PLAINTEXT://127.0.0.1:{port}\n"
        )
        output = "".join(failing_start(str(properties)))
    assert "Fatal error during KafkaServer startup. Prepare to shutdown" in output
    assert f"127.0.0.1:{port}" in output
    with BrokerProcess(tmp_path) as broker:
        assert api_versions(broker) == 0


def test_s_start_6_ids_are_generated_kept_and_checked(tmp_path: Path) -> None:
    broker = BrokerProcess(tmp_path, {"broker.id": "-1"})
    with broker:
        first = meta(broker)
        assert first["node.id"] == "1001"
        assert len(first["cluster.id"]) == 22
        broker.restart()
        assert meta(broker) == first
    output = "".join(failing_start(str(broker.properties), "--override", "broker.id=7"))
    assert "7" in output
    assert "1001" in output


def test_s_start_4_the_state_and_s_start_7_the_cluster_id_are_metrics(tmp_path: Path) -> None:
    port = free_port()
    with BrokerProcess(tmp_path, {"metrics.http.listener": f"127.0.0.1:{port}"}) as broker:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
            text = answer.read().decode()
        assert "kafka_server_kafkaserver_brokerstate 3.0" in text
        assert "kafka_server_batchopening_waiting 0.0" in text
        assert meta(broker)["cluster.id"] in text


def test_what_a_client_did_is_what_a_scrape_says(tmp_path: Path) -> None:
    port = free_port()

    def scrape() -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
            text = answer.read().decode()
        return {
            (sample.name, tuple(sorted(sample.labels.items()))): sample.value
            for family in text_string_to_metric_families(text)
            for sample in family.samples
        }

    with BrokerProcess(tmp_path, {"metrics.http.listener": f"127.0.0.1:{port}"}) as broker:
        scrape()
        producer = Producer({"bootstrap.servers": broker.bootstrap})
        for number in range(10):
            producer.produce("t", str(number))
        assert producer.flush(10) == 0
        consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "g"})
        consumer.commit(offsets=[TopicPartition("t", 0, 4)], asynchronous=False)
        consumer.close()
        found = scrape()
        place = (("partition", "0"), ("topic", "t"))
        assert found["kafka_consumergroup_lag", (("consumergroup", "g"), *place)] == 6
        assert found["kafka_topic_partition_current_offset", place] == 10
        assert found["kafka_cluster_partition_replicascount", place] == 1
        assert found["kafka_server_brokertopicmetrics_messagesinpersec", (("topic", "t"),)] == 10
        produce = (("request", "Produce"),)
        prefix = "kafka_network_requestmetrics_"
        sums = [
            found[f"{prefix}{phase}timems_sum", produce]
            for phase in ("requestqueue", "local", "remote", "responsequeue", "responsesend")
        ]
        total = found[prefix + "totaltimems_sum", produce]
        assert total > 0
        assert sum(sums) == pytest.approx(total, rel=0.2)
        idle = found["kafka_network_socketserver_networkprocessoravgidle_percent", ()]
        assert 0 < idle < 1
        assert found["kafka_server_kafkaserver_linux_disk_write_bytes", ()] >= 0


def test_every_listener_is_announced_with_its_real_port(tmp_path: Path) -> None:
    overrides = {
        "listeners": "PLAINTEXT://127.0.0.1:0,SECOND://127.0.0.1:0",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SECOND:PLAINTEXT",
    }
    with BrokerProcess(tmp_path, overrides) as broker:
        found = re.findall(r"^Listening on (\w+)://127\.0\.0\.1:(\d+)$", broker.output(), re.M)
        assert [name for name, _ in found] == ["PLAINTEXT", "SECOND"]
        for _, port in found:
            with WireClient(int(port)) as client:
                assert client.call(ApiKey.METADATA, 9).brokers[0].port == int(port)


def test_a_stop_with_clients_in_every_state_is_quick(tmp_path: Path) -> None:
    broker = BrokerProcess(tmp_path).start()
    clients = [WireClient(broker.port) for _ in range(20)]
    for number, client in enumerate(clients):
        if number % 2:
            client.send(b"\0\0\0")
    begin = time.monotonic()
    broker.stop()
    assert time.monotonic() - begin < 20
    for client in clients:
        assert client.closed_by_peer()
        client.close()


def test_a_second_signal_ends_it_at_once(tmp_path: Path) -> None:
    """A client that reads no replies delays a stop; a second signal ends the broker at once."""
    broker = BrokerProcess(tmp_path).start()
    assert broker.process is not None
    process = broker.process
    with WireClient(broker.port) as stuck:
        stuck.socket.settimeout(0.5)
        frame = request_frame(ApiKey.API_VERSIONS, 0) * 1000
        with pytest.raises(TimeoutError):
            while True:
                stuck.send(frame)
        process.send_signal(signal.SIGTERM)
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(1)  # longer than what counts as the same signal twice
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 1
    assert "Terminating at once due to a second signal SIGTERM" in broker.output()
    assert "shut down completed" not in broker.output()


def test_unknown_keys_are_warned_of(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path, {"unknown.key.of.mine": "1"}) as broker:
        assert "unknown.key.of.mine" in broker.output()
