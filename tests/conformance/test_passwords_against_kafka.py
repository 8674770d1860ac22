"""Passwords in ZooKeeper: Kafka 3.9 decrypts what is encrypted here, and the other way round."""

from pathlib import Path
from random import Random

import pytest

from broker.cluster.password_encoder import CBC, GCM, PasswordEncoder
from config.broker_config import BrokerConfig
from tests.support.cluster.member import CLUSTER_KAFKA
from tests.support.kafka_jars import java

pytestmark = pytest.mark.conformance

ORACLE = Path(__file__).with_name("PasswordOracle.java")
SECRET, PASSWORD = "a secret ü", "passä 😀 word"


def encoder(cipher: str) -> PasswordEncoder:
    config = {"password.encoder.secret": SECRET, "password.encoder.cipher.algorithm": cipher}
    return PasswordEncoder(BrokerConfig.parse(config), Random(2).randbytes)


def test_each_side_reads_the_passwords_of_the_other() -> None:
    ours = "".join(encoder(cipher).encode(PASSWORD) + "\n" for cipher in (CBC, GCM))
    options = ("-Dfile.encoding=UTF-8", "-Dstdout.encoding=UTF-8", "-Dsun.jnu.encoding=UTF-8")
    done = java(str(ORACLE), SECRET, PASSWORD, version=CLUSTER_KAFKA, stdin=ours, options=options)
    *theirs, first, second = done.stdout.splitlines()
    assert first == second == PASSWORD
    assert [encoder(CBC).decode(text) for text in theirs] == [PASSWORD] * 4
