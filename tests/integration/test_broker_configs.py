"""Configs of a running broker, changed by Kafka's own kafka-configs; they hold over kill -9."""

from pathlib import Path

import pytest

from tests.support.broker_process import BrokerProcess
from tests.support.installation import under_test
from tests.support.kafka_jars import java

pytestmark = pytest.mark.integration


def configs(broker: BrokerProcess, kind: str, *args: str) -> str:
    command = ("--bootstrap-server", broker.bootstrap, "--entity-type", kind, *args)
    return java("kafka.admin.ConfigCommand", *command).stdout


def test_s_cfg_2_kafka_configs_on_brokers(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path, {"log.retention.hours": "2"}) as broker:
        java(
            "org.apache.kafka.tools.TopicCommand",
            *("--bootstrap-server", broker.bootstrap, "--create", "--topic", "t"),
        )
        everywhere, here = ("--entity-default",), ("--entity-name", "1")
        added = ("--alter", "--add-config", "log.retention.ms=5000000,max.connections=400")
        assert "Completed updating default config for brokers" in configs(
            broker, "brokers", *everywhere, *added
        )
        assert "Completed updating config for broker 1" in configs(
            broker, "brokers", *here, "--alter", "--add-config", "max.connections=500"
        )
        with pytest.raises(AssertionError) as refused:
            configs(broker, "brokers", *here, "--alter", "--add-config", "log.dirs=/elsewhere")
        assert "Cannot update these configs dynamically" in str(refused.value)
        broker.kill()
        broker.start()
        defaults = configs(broker, "brokers", *everywhere, "--describe")
        assert "log.retention.ms=5000000" in defaults
        assert "DYNAMIC_DEFAULT_BROKER_CONFIG:log.retention.ms=5000000" in defaults
        mine = configs(broker, "brokers", *here, "--describe")
        assert (
            "max.connections=500 sensitive=false synonyms={DYNAMIC_BROKER_CONFIG:max.connections="
            "500, DYNAMIC_DEFAULT_BROKER_CONFIG:max.connections=400, DEFAULT_CONFIG:" in mine
        )
        topic = configs(broker, "topics", "--entity-name", "t", "--describe", "--all")
        assert "retention.ms=5000000 sensitive=false" in topic
        deleted = ("--alter", "--delete-config", "log.retention.ms")
        configs(broker, "brokers", *everywhere, *deleted)
        topic = configs(broker, "topics", "--entity-name", "t", "--describe", "--all")
        assert "retention.ms=7200000 sensitive=false" in topic


def test_kafka_configs_on_loggers(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path) as broker:
        here = ("--entity-name", "1")
        network = f"{under_test().package}broker.network"
        levels = configs(broker, "broker-loggers", *here, "--describe")
        assert "root=INFO sensitive=false" in levels
        assert f"{network}=INFO" in levels
        changed = ("--alter", "--add-config", f"{network}=DEBUG")
        assert "Completed updating config for broker-logger 1" in configs(
            broker, "broker-loggers", *here, *changed
        )
        levels = configs(broker, "broker-loggers", *here, "--describe")
        assert f"{network}.socket_server=DEBUG" in levels
        assert f"Updated the log level of {network} to DEBUG" in broker.output()
        with pytest.raises(AssertionError) as refused:
            configs(broker, "broker-loggers", *here, "--alter", "--add-config", "root=LOUD")
        assert "not a supported log level" in str(refused.value)
