"""A broker of this project or, with `PYKAFKALOG_TEST_BROKER=apache`, one of Apache Kafka.

A scenario that Apache Kafka does not pass says nothing about this project's broker.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from tests.support.apache_kafka import ApacheKafka
from tests.support.broker_process import BrokerProcess

ON_APACHE: Final = os.environ.get("PYKAFKALOG_TEST_BROKER") == "apache"

EitherBroker = BrokerProcess | ApacheKafka


def either_broker(directory: Path, settings: Mapping[str, str] | None = None) -> EitherBroker:
    """Return a broker that has not been started."""
    return (ApacheKafka if ON_APACHE else BrokerProcess)(directory, settings)
