"""Apache Kafka's own clients and tools over a listener that authenticates, unmodified."""

import re
from pathlib import Path

import pytest

from broker.registry import ADVERTISED
from protocol.api_keys import ApiKey
from tests.support.kafka_jars import ROOT, java
from tests.support.sasl_broker import (
    PASSWORDS,
    WAYS,
    SaslBroker,
    SaslBrokers,
    java_options,
    java_settings,
)

TOOLS = "org.apache.kafka.tools"
CONFIGS = "kafka.admin.ConfigCommand"


@pytest.fixture(scope="module")
def broker(sasl_brokers: SaslBrokers) -> SaslBroker:
    return sasl_brokers["SASL_PLAINTEXT"]


@pytest.mark.parametrize(("protocol", "mechanism"), WAYS)
def test_admin_client_producer_and_consumer(
    sasl_brokers: SaslBrokers, tmp_path: Path, protocol: str, mechanism: str, topic: str, group: str
) -> None:
    broker = sasl_brokers[protocol]
    authority = broker.authority if protocol == "SASL_SSL" else None
    settings = java_settings(tmp_path, mechanism, authority=authority)
    tour = str(ROOT / "tests/integration/ClientTour.java")
    result = java(
        tour, broker.bootstrap, topic, group, str(settings), options=java_options(tmp_path)
    )
    assert result.stdout.splitlines()[-4:] == [
        "end 100",
        "committed 100",
        "in transactions 1 committed 103",
        "groups 0",
    ]


@pytest.mark.parametrize("mechanism", PASSWORDS)
def test_kafkas_tools_report_a_wrong_password(
    broker: SaslBroker, tmp_path: Path, mechanism: str
) -> None:
    settings = java_settings(tmp_path, mechanism, "wrong")
    result = java(
        f"{TOOLS}.TopicCommand",
        *("--bootstrap-server", broker.bootstrap, "--list", "--command-config", str(settings)),
        check=False,
    )
    assert result.returncode != 0
    told = {
        "PLAIN": "Authentication failed: Invalid username or password",
        "SCRAM-SHA-256": "due to invalid credentials with SASL mechanism SCRAM-SHA-256",
        "SCRAM-SHA-512": "due to invalid credentials with SASL mechanism SCRAM-SHA-512",
    }[mechanism]
    assert told in result.stdout + result.stderr


def configs(broker: SaslBroker, directory: Path, *args: str, check: bool = True) -> str:
    settings = java_settings(directory, "SCRAM-SHA-256")
    where = ("--bootstrap-server", broker.bootstrap, "--command-config", str(settings))
    result = java(CONFIGS, *where, "--entity-type", "users", *args, check=check)
    return result.stdout + result.stderr


def test_kafka_configs_makes_and_deletes_users(broker: SaslBroker, tmp_path: Path) -> None:
    def lists_topics(mechanism: str) -> bool:
        carols = java_settings(tmp_path / mechanism, mechanism, "c-secret", "carol")
        where = ("--bootstrap-server", broker.bootstrap, "--command-config", str(carols))
        return java(f"{TOOLS}.TopicCommand", *where, "--list", check=False).returncode == 0

    name = ("--alter", "--entity-name", "carol")
    for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512"):
        made = f"{mechanism}=[iterations=8192,password=c-secret]"
        assert "Completed" in configs(broker, tmp_path, *name, "--add-config", made)
        assert lists_topics(mechanism)
    assert "Completed" in configs(broker, tmp_path, *name, "--delete-config", "SCRAM-SHA-256")
    assert not lists_topics("SCRAM-SHA-256")
    assert lists_topics("SCRAM-SHA-512")
    many = "SCRAM-SHA-256=[iterations=20000,password=x]"
    assert "iterations" in configs(broker, tmp_path, *name, "--add-config", many, check=False)


@pytest.mark.skipif(
    ApiKey.DESCRIBE_CLIENT_QUOTAS not in ADVERTISED, reason="the tool asks for quotas, too"
)
def test_kafka_configs_describes_users(broker: SaslBroker, tmp_path: Path) -> None:
    described = configs(broker, tmp_path, "--describe", "--entity-name", "alice")
    assert "SCRAM credential configs for user-principal 'alice' are" in described
    assert "SCRAM-SHA-256=iterations=4096" in described
    assert "user-principal 'alice'" in configs(broker, tmp_path, "--describe")


def test_kafka_delegation_tokens(broker: SaslBroker, tmp_path: Path) -> None:
    settings = java_settings(tmp_path, "SCRAM-SHA-512")

    def tokens(*args: str, config: Path = settings, check: bool = True) -> str:
        where = ("--bootstrap-server", broker.bootstrap, "--command-config", str(config))
        result = java(f"{TOOLS}.DelegationTokenCommand", *where, *args, check=check)
        return result.stdout + result.stderr

    created = tokens(
        *("--create", "--max-life-time-period", "-1", "--renewer-principal", "User:bob")
    )
    row = next(line for line in created.splitlines() if "User:alice" in line)
    token_id, secret = row.split()[:2]
    assert re.fullmatch(r"[\w-]{22}", token_id)
    assert token_id in tokens("--describe", "--owner-principal", "User:alice")
    by_token = java_settings(
        tmp_path / "token", "SCRAM-SHA-256", secret, token_id, ' tokenauth="true"'
    )
    java(
        f"{TOOLS}.TopicCommand",
        *("--bootstrap-server", broker.bootstrap, "--list", "--command-config", str(by_token)),
    )
    refused = tokens("--create", "--max-life-time-period", "-1", config=by_token, check=False)
    assert "Delegation Token requests are not allowed" in refused
    renewed = tokens("--renew", "--hmac", secret, "--renew-time-period", "1000")
    assert "Completed renew operation" in renewed
    expired = tokens("--expire", "--hmac", secret, "--expiry-time-period", "-1")
    assert "Completed expire operation" in expired
    assert token_id not in tokens("--describe", "--owner-principal", "User:alice")
    gone = java(
        f"{TOOLS}.TopicCommand",
        *("--bootstrap-server", broker.bootstrap, "--list", "--command-config", str(by_token)),
        check=False,
    )
    assert gone.returncode != 0
