"""No name, record or error of a stranger reaches a person's terminal as control characters.

Every command runs on a pseudo-terminal, beside a broker and files full of them.
"""

import re
from collections.abc import Iterator, Sequence

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import (
    AdminClient,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from protocol.records.builder import build_batch
from protocol.types import uuid_to_text
from tests.support.broker_process import BrokerProcess
from tests.support.command_line import pykafkalog
from tests.support.installation import under_test
from tests.support.terminal import Terminal

OBEYED = ("\x1b]0;mine", "\x1b[2J", "\x9b", "\u202e", "\x07")
EVIL = "\x1b]0;mine\x07\x1b[2J\x9b31m\u202e"
ASCII_EVIL = EVIL.encode("ascii", "ignore").decode()
TOPIC, PLAIN = f"t{EVIL}", "plain"


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """A broker whose topics, groups, transactional ids, clients and records have hostile names."""
    settings = {
        "log.retention.ms": "-1",  # the records are of 1970
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
    }
    broker = BrokerProcess(tmp_path_factory.mktemp("hostile"), settings)
    rows = [(1, EVIL.encode(), EVIL.encode(), [(EVIL, EVIL.encode())])]
    for number, name in enumerate((TOPIC, PLAIN)):
        partition = broker.log_dir / f"{name}-0"
        partition.mkdir(parents=True)
        (partition / f"{0:020}.log").write_bytes(build_batch(rows, leader_epoch=0))
        text = f"version: 0\ntopic_id: {uuid_to_text(bytes([number + 1] * 16))}\n"
        (partition / "partition.metadata").write_text(text)
    with broker:
        client = {"bootstrap.servers": broker.bootstrap, "client.id": EVIL}
        consumer = Consumer(
            {**client, "group.id": EVIL, "group.instance.id": EVIL, "auto.offset.reset": "earliest"}
        )
        consumer.subscribe([PLAIN])
        assert consumer.poll(20) is not None
        consumer.commit(asynchronous=False)
        held = {"transactional.id": EVIL, "transaction.timeout.ms": 900_000}  # while all tests run
        producer = Producer({**client, **held})
        producer.init_transactions(20)
        producer.begin_transaction()
        producer.produce(PLAIN, EVIL, EVIL, headers={EVIL: EVIL})
        producer.flush(20)
        admin = AdminClient(client)
        scram = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096)
        changes = [UserScramCredentialUpsertion(EVIL, scram, b"secret")]
        for done in admin.alter_user_scram_credentials(changes).values():
            done.result(20)
        (broker.directory / "secret.txt").write_text("secret")
        yield broker
        producer.abort_transaction(20)
        consumer.close()


def on_terminal(words: Sequence[str]) -> str:
    """The raw output of a command on a terminal."""
    used = under_test()
    environment = {**used.process_environment(), "COLUMNS": "400"}
    with Terminal([*used.tool(), *words], environment, used.directory) as terminal:
        terminal.type("\x04")  # the end of standard input
        terminal.end()
    return terminal.raw


OF_A_BROKER = (
    ("cluster",),
    ("cluster", "--health"),
    ("topics",),
    ("topics", "--sizes"),
    ("topics", "--describe", TOPIC),
    ("topics", "--describe", f"none{EVIL}"),
    ("topics", "--create", EVIL),
    ("topics", "--json"),
    ("groups",),
    ("groups", "--describe", EVIL),
    ("groups", "--describe", EVIL, "--json"),
    ("groups", "--reset", EVIL, "--topic", PLAIN, "--to", "earliest"),
    ("groups", "--delete", EVIL),
    ("configs", "--topic", TOPIC),
    ("configs", "--topic", PLAIN, "--add", f"retention.ms={EVIL}"),
    ("transactions",),
    ("transactions", "--describe", EVIL),
    ("transactions", "--producers", PLAIN),
    ("transactions", "--why", f"{PLAIN}:0"),
    ("transactions", "--find-hanging"),
    ("quotas", "--user", EVIL, "--client", EVIL, "--add", "producer_byte_rate=1e9"),
    ("quotas", "--client", EVIL, "--add", f"{EVIL}=1"),
    ("quotas",),
    ("users",),
    ("users", "--add", f"none{EVIL}"),
    ("users", "--add", ASCII_EVIL, "--password-file", "secret.txt"),
    ("users", "--remove", ASCII_EVIL),
    ("users", "--remove", f"none{EVIL}"),
    ("acls", "--add", "--allow", EVIL, "--operation", "read", "--topic", EVIL, TOPIC),
    ("acls",),
    ("acls", "--explain", "--principal", EVIL, "--operation", "read", "--topic", TOPIC),
    ("acls", "--remove", "--principal", EVIL),
    ("acls", "--topic", EVIL, "--operation", EVIL),
    ("log-dirs", "--topics"),
    ("log-dirs", "--partitions"),
    ("get-offsets", TOPIC),
    ("get-offsets", f"none{EVIL}"),
    ("consume", PLAIN, "--from-beginning", "--exit"),
    ("consume", PLAIN, "--from-beginning", "--exit", "--json"),
    ("consume", PLAIN, "--from-beginning", "--exit", "--format", "{key:raw} {value:raw} {headers}"),
    ("consume", EVIL, "--exit"),
    ("produce", f"none{EVIL}:"),
    ("perf", EVIL),
)
OF_FILES = (
    ("dump-log", "--print-data-log", "{t}"),
    ("dump-log", "--print-data-log", "--json", "{t}"),
    ("fsck", "--all", "{dir}"),
    ("fsck", "{dir}"),
    ("fsck", "{dir}/none" + EVIL),
    ("explain-cleaner", "{dir}"),
    ("explain-cleaner", "--records", "{t}", "--config", "cleanup.policy=compact"),
    ("explain-retention", "{dir}"),
    ("sql", f'select topic, key, value, headers from "{TOPIC}"', "--log-dirs", "{dir}"),
    ("sql", "select topic, key from plain", "--log-dirs", "{dir}", "--format", "csv"),
    ("adopt", "--dry-run", "{properties}"),
    ("users", "--remove", ASCII_EVIL, "--offline", "{properties}" + EVIL),
    ("certificates", "{directory}/c" + EVIL, "--host", EVIL, "--client", EVIL),
    ("certificates", "{directory}/c" + EVIL),
    ("completion", EVIL),
    ("pipeline", "stats", "--log-dirs", "{dir}" + EVIL, "none"),
)


def require_shown(seen: str) -> None:
    assert "Traceback" not in seen
    for sequence in OBEYED:
        assert sequence not in seen, seen[:4000]


@pytest.mark.parametrize("words", OF_A_BROKER, ids=lambda words: ascii(" ".join(words)))
def test_commands_escape_hostile_names_of_a_broker(
    broker: BrokerProcess, words: tuple[str, ...]
) -> None:
    require_shown(on_terminal((*words, "-b", broker.bootstrap)))


@pytest.mark.parametrize("words", OF_FILES, ids=lambda words: ascii(" ".join(words)))
def test_commands_escape_hostile_names_in_files(
    broker: BrokerProcess, words: tuple[str, ...]
) -> None:
    known = {
        "{dir}": str(broker.log_dir),
        "{directory}": str(broker.directory),
        "{t}": str(broker.log_dir / f"{TOPIC}-0"),
        "{properties}": str(broker.properties),
    }
    for name, path in known.items():
        words = tuple(word.replace(name, path) for word in words)
    require_shown(on_terminal(words))


def test_every_command_is_among_these() -> None:
    told = re.findall(r"^    ([a-z-]+)", pykafkalog("--help").stdout, re.MULTILINE)
    assert len(told) > 15
    assert {words[0] for words in (*OF_A_BROKER, *OF_FILES)} == {*told}


def test_a_password_prompt_escapes_the_name_of_the_user(broker: BrokerProcess) -> None:
    used = under_test()
    words = [*used.tool(), "users", "--add", ASCII_EVIL, "-b", broker.bootstrap]
    with Terminal(words, used.process_environment(), used.directory) as terminal:
        terminal.wait_for(re.escape("Password of ^[]0;mine^G^[[2J31m: "))
        terminal.type("\x04")  # no password
        terminal.wait_for("there is no password")
        require_shown(terminal.raw)


def test_the_names_are_seen(broker: BrokerProcess) -> None:
    for words in (("groups",), ("transactions",), ("topics",), ("consume", PLAIN, "-n", "1")):
        seen = on_terminal((*words, "-b", broker.bootstrap))
        assert "^[]0;mine^G^[[2J<U+009B>31m<U+202E>" in seen, words


def test_a_pipe_gets_the_names_as_they_are(broker: BrokerProcess) -> None:
    assert TOPIC in pykafkalog("topics", "-b", broker.bootstrap).stdout


def test_the_brokers_log_has_no_controls(broker: BrokerProcess) -> None:
    require_shown(broker.output_file.read_text())
