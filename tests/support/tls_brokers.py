"""Broker processes, ours and Apache Kafka, with a TLS listener beside the plain one.

encrypt(broker, directory, ssl__client__auth="required")    before its start
broker.start()
tls_port(broker)
"""

import re
from pathlib import Path

from tests.support.apache_kafka import ApacheKafka
from tests.support.broker_process import BrokerProcess
from tests.support.certificates import write_files
from tests.support.ports import free_port

_SSL = re.compile(r"SSL://127\.0\.0\.1:(\d+)")

Broker = BrokerProcess | ApacheKafka


def encrypt(broker: Broker, directory: Path, **more: str) -> dict[str, str]:
    """Give a broker an SSL listener; return the paths of ca, broker and client PEM files.

    `more` are settings of it, with `__` for a dot.
    """
    directory.mkdir(parents=True, exist_ok=True)
    files = write_files(directory)
    listener = f"SSL://127.0.0.1:{free_port()}"
    settings = broker.settings
    settings["listeners"] += f",{listener}"
    if "advertised.listeners" in settings:
        settings["advertised.listeners"] += f",{listener}"
    if "listener.security.protocol.map" in settings:
        settings["listener.security.protocol.map"] += ",SSL:SSL"
    settings |= {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": files["broker"],
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": files["ca"],
        **{key.replace("__", "."): value for key, value in more.items()},
    }
    return files


def tls_port(broker: Broker) -> int:
    """The port of its TLS listener."""
    found = _SSL.search(broker.settings["listeners"])
    assert found is not None
    return int(found[1])


def java_properties(files: dict[str, str]) -> dict[str, str]:
    """The settings of a Java client that shows a certificate."""
    return {
        "security.protocol": "SSL",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": files["ca"],
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": files["client"],
    }


def librdkafka_settings(files: dict[str, str]) -> dict[str, str]:
    """The settings of a confluent-kafka client that shows a certificate."""
    return {
        "security.protocol": "SSL",
        "ssl.ca.location": files["ca"],
        "ssl.certificate.location": files["client"],
        "ssl.key.location": files["client"],
    }


def write_client_file(path: Path, files: dict[str, str]) -> Path:
    """Write `client.properties` of a Java client."""
    path.write_text("".join(f"{k}={v}\n" for k, v in java_properties(files).items()))
    return path
