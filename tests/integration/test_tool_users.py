"""`pykafkalog users`, and the other commands over a listener that authenticates."""

import json
from pathlib import Path

import pytest

from tests.support.broker_process import BrokerProcess
from tests.support.command_in_process import in_process
from tests.support.sasl_broker import (
    LISTENER,
    PASSWORD,
    PASSWORDS,
    USER,
    WAYS,
    SaslBrokers,
    java_settings,
)


@pytest.fixture
def where(sasl_brokers: SaslBrokers) -> tuple[str, ...]:
    return log_in(sasl_brokers["SASL_PLAINTEXT"].bootstrap, "SCRAM-SHA-256", USER, PASSWORD)


def log_in(bootstrap: str, mechanism: str, user: str, password: str) -> tuple[str, ...]:
    return (
        *("-b", bootstrap),
        *("-X", "security.protocol=SASL_PLAINTEXT", "-X", f"sasl.mechanism={mechanism}"),
        *("-X", f"sasl.username={user}", "-X", f"sasl.password={password}"),
    )


def test_users_are_added_listed_and_removed(where: tuple[str, ...]) -> None:
    def users(*words: str, secret: str = "") -> dict[str, dict[str, int]]:
        done = in_process("users", *where, *words, "--json", stdin=secret.encode())
        assert done.returncode == 0, done.stderr
        return {user["user"]: user["mechanisms"] for user in json.loads(done.stdout)}

    both = {"SCRAM-SHA-256": 4096, "SCRAM-SHA-512": 4096}
    assert users("--add", "c=a,rol", secret="ö secret\n") == {"c=a,rol": both}
    assert users() == {USER: both, "c=a,rol": both}
    bootstrap = where[1]
    for mechanism in both:
        carols = log_in(bootstrap, mechanism, "c=a,rol", "ö secret")
        assert in_process("cluster", *carols).returncode == 0
    left = {"SCRAM-SHA-256": 4096}
    assert users("--remove", "c=a,rol", "--mechanism", "SCRAM-SHA-512") == {"c=a,rol": left}
    refused = in_process("cluster", *log_in(bootstrap, "SCRAM-SHA-512", "c=a,rol", "ö secret"))
    assert refused.returncode == 1
    assert "invalid credentials with SASL mechanism SCRAM-SHA-512" in refused.stderr
    assert refused.stderr.count("\n") == 1
    assert users("--remove", "c=a,rol") == {"c=a,rol": {}}
    assert users() == {USER: both}
    again = in_process("users", *where, "--remove", "c=a,rol")
    assert (again.returncode, again.stdout) == (1, "")
    assert "there is no user c=a,rol" in again.stderr


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_the_first_user_is_there_before_the_first_start(tmp_path: Path, mechanism: str) -> None:
    """No listener is open to everybody, at no time."""
    broker = BrokerProcess(
        tmp_path / "broker",
        {
            "listeners": f"{LISTENER}://127.0.0.1:0",
            "listener.security.protocol.map": f"{LISTENER}:SASL_PLAINTEXT",
            "inter.broker.listener.name": LISTENER,
            "sasl.enabled.mechanisms": mechanism,
        },
    )
    properties = tmp_path / "server.properties"
    properties.write_text("".join(f"{key}={value}\n" for key, value in broker.settings.items()))
    added = ("users", "--offline", str(properties), "--add", "admin")
    done = in_process(*added, stdin=b"first secret\n")
    assert done.returncode == 0, done.stderr
    with broker:
        bootstrap = f"127.0.0.1:{broker.port_of(LISTENER)}"
        where = log_in(bootstrap, mechanism, "admin", "first secret")
        done = in_process("users", *where)
        assert done.returncode == 0, done.stderr
        assert "admin" in done.stdout
        while_it_runs = in_process(*added, stdin=b"x\n")
        assert while_it_runs.returncode == 1
        assert "lock" in while_it_runs.stderr.lower()


@pytest.mark.parametrize(("protocol", "mechanism"), [way for way in WAYS if way[1] in PASSWORDS])
def test_commands_log_in_with_the_file_of_kafkas_tools(
    sasl_brokers: SaslBrokers, tmp_path: Path, topic: str, protocol: str, mechanism: str
) -> None:
    broker = sasl_brokers[protocol]
    authority = broker.authority if protocol == "SASL_SSL" else None
    where = (
        *("-b", broker.bootstrap),
        *("-F", str(java_settings(tmp_path, mechanism, authority=authority))),
    )

    def run(*words: str, given: bytes = b"") -> str:
        done = in_process(*words, *where, stdin=given)
        assert done.returncode == 0, done.stderr
        return done.stdout

    run("topics", "--create", topic, "--partitions", "1")
    run("produce", topic, given=b"a\nb\n")
    assert run("consume", topic, "--from-beginning", "--exit") == "a\nb\n"
    assert run("get-offsets", topic).split(":")[-1].strip() == "2"
    assert run("consume", topic, "--group", topic, "--from-beginning", "--exit") == "a\nb\n"
    assert topic in run("groups")
    run("groups", "--delete", topic)
    run("configs", "--topic", topic, "--add", "retention.ms=60000")
    assert "healthy" in run("cluster")
    assert topic in run("log-dirs", "--topics")


def test_a_command_without_a_login_lists_the_mechanisms(sasl_brokers: SaslBrokers) -> None:
    bootstrap = sasl_brokers["SASL_PLAINTEXT"].bootstrap
    refused = in_process("topics", "-b", bootstrap)
    assert refused.returncode == 1
    assert refused.stderr == (
        f"pykafkalog topics: {bootstrap} asks who you are: security.protocol=SASL_PLAINTEXT,"
        " sasl.mechanism (it offers PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER),"
        " sasl.username and sasl.password (-X, or --command-config)\n"
    )
