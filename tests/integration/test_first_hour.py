"""A user's first hour on a terminal of 80 by 24: failures of each kind, Ctrl-C, a closed pipe.

Whatever goes wrong, there is no traceback, nothing is cut, and the message names the next step.
"""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.broker_process import BrokerProcess
from tests.support.installation import under_test
from tests.support.terminal import CTRL_C, Terminal

PROMPT = r"^(?:\^C)?\[(\d+)\]> \Z"
CUT = "…"


@dataclass(frozen=True, slots=True)
class Shell:
    """A shell on a terminal, whose prompt tells the last exit code."""

    terminal: Terminal

    def run(self, command: str) -> tuple[int, str]:
        """Type it; the exit code, and what was printed."""
        since = self.terminal.position
        self.terminal.type(f"{command}\n")
        return self._after(since)

    def interrupt(self, command: str, once: str) -> tuple[int, str]:
        """Type it, and Ctrl-C when it says `once`."""
        since = self.terminal.position
        self.terminal.type(f"{command}\n")
        self.terminal.wait_for(once, since + len(command))
        self.terminal.type(CTRL_C)
        return self._after(since)

    def _after(self, since: int) -> tuple[int, str]:
        self.terminal.wait_for(r"\n", since)
        found = self.terminal.wait_for(PROMPT, self.terminal.text.index("\n", since))
        printed = self.terminal.text[self.terminal.text.index("\n", since) + 1 : found.start()]
        assert "Traceback" not in printed, printed
        assert CUT not in printed, printed
        return int(found[1]), printed


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    with BrokerProcess(tmp_path_factory.mktemp("hour")) as broker:
        yield broker


@pytest.fixture
def shell(broker: BrokerProcess, tmp_path: Path) -> Iterator[Shell]:
    used = under_test()
    if not used.package:  # the commands of the checkout
        programs = Path(used.python).parent
    else:
        programs = used.directory / "bin"
    environment = {
        **used.process_environment(),
        "PATH": f"{programs}:{os.environ['PATH']}",
        "PS1": "[$?]> ",
        "HOME": str(tmp_path),
        "PYKAFKALOG_BOOTSTRAP": broker.bootstrap,
        "P": str(broker.properties),
        "LOGS": str(broker.log_dir),
        "PORT": str(broker.port),
    }
    words = ["bash", "--norc", "--noprofile", "--noediting"]
    with Terminal(words, environment, tmp_path) as terminal:
        terminal.wait_for(PROMPT)
        yield Shell(terminal)


FAILURES = (
    # (command, exit code, the mistake, what to do next)
    ("pykafkalog topics -b localhost:1", 1, "cannot connect to localhost:1", "is --bootstrap-serv"),
    ("PYKAFKALOG_BOOTSTRAP=no.invalid:1 pykafkalog topics", 1, "no machine is known as", "right?"),
    ("pykafkalog consume nothing-of-the-kind", 1, "there is no topic", "lists what there is"),
    ("pykafkalog topics --delete missing", 1, "there is no topic missing", "lists what there is"),
    ("pykafkalog topics --nope", 2, "unknown arguments: --nope", "topics --help` tells more"),
    ("pykafkalog frob", 2, "there is no command 'frob'", "`pykafkalog --help` tells more"),
    ("pykafkalog", 2, "usage: pykafkalog", "`pykafkalog COMMAND --help` shows examples"),
    ("pykafkalog fsck /no/such", 2, "/no/such does not exist", "name a directory of log.dirs"),
    ("pykafkalog dump-log /no/such", 1, "/no/such does not exist", "name a file of a log"),
    ("pykafkalog adopt /no/such", 1, "No such file", "Name the broker's server.properties"),
    ("pykafkalog produce t --file /no/such", 1, "cannot read /no/such", "No such file"),
    ("pykafkalog topics --create t --config retention.ms=x", 1, "retention.ms", "Not a number"),
    ("pykafkalog-broker", 1, "USAGE", "server.properties"),
    ("pykafkalog-broker --frob x", 1, "--frob is not a recognized option", "USAGE"),
    ("pykafkalog-broker /no/such", 1, "No such file", "Name the broker's server.properties"),
    (
        "pykafkalog-broker $P --override listeners=PLAINTEXT://127.0.0.1:$PORT"
        " --override log.dirs=$HOME/a",
        1,
        "Address already in use",
        "takes another",
    ),
    ("pykafkalog-broker $P", 1, "is using this directory", "Stop it, or take another"),
    (
        "pykafkalog-broker $P --override log.dirs=/proc/no --override listeners=PLAINTEXT://:0",
        1,
        "No such file or directory",
        "May this user write there?",
    ),
    (
        "pykafkalog-broker $P --override listeners=PLAINTEXT://no.invalid:0"
        " --override log.dirs=$HOME/a",
        1,
        "Cannot resolve the host",
        "an address of this machine",
    ),
    (
        "pykafkalog-broker $P --override listeners=SSL://:0 --override log.dirs=$HOME/a"
        " --override security.inter.broker.protocol=SSL",
        1,
        "there is no certificate: set ssl.keystore.location",
        "`pykafkalog certificates DIRECTORY` makes some",
    ),
    (
        "pykafkalog-broker $P --override listeners=SASL_SSL://:0",
        1,
        "offer the SASL mechanism GSSAPI (Kerberos)",
        "set listener.name.sasl_ssl.sasl.enabled.mechanisms to some of PLAIN",
    ),
    (
        "pykafkalog-broker $P --override zookeeper.connect=127.0.0.1:1"
        " --override zookeeper.connection.timeout.ms=100",
        1,
        "no ZooKeeper server of 127.0.0.1:1 has answered",
        "zookeeper.connection.timeout.ms",
    ),
    (
        "pykafkalog-broker $P --override num.io.threads=many",
        1,
        "Invalid value many",
        "Not a number",
    ),
)


def test_each_failure_says_what_it_is_and_what_to_do(shell: Shell) -> None:
    wrong = []
    for command, wanted, mistake, advice in FAILURES:
        code, printed = shell.run(command)
        if code != wanted or mistake not in printed or advice not in printed:
            wrong.append(f"{command}\n[{code}] {printed}")
    assert not wrong, "\n\n".join(wrong)


def test_ctrl_c_ends_a_consumer_and_a_broker(shell: Shell) -> None:
    shell.run("echo one | pykafkalog produce stays")
    code, printed = shell.interrupt("pykafkalog consume stays --from-beginning", "^one")
    assert code == 130, printed
    code, printed = shell.interrupt(
        "pykafkalog-broker $P --override listeners=PLAINTEXT://:0 --override log.dirs=memory:",
        "Kafka Server started",
    )
    assert code == 0, printed
    assert "is on every interface and asks nobody who they are" in printed
    assert printed.rstrip().endswith("shut down completed (broker.server)") or re.search(
        r"shut down completed \(pykafkalog\.broker\.server\)\s*\Z", printed
    )


def test_a_pipe_that_is_closed_early_is_no_failure_to_read_of(shell: Shell) -> None:
    shell.run("seq 1 20000 | pykafkalog produce many")
    for command in (
        "pykafkalog consume many --from-beginning | head -1",
        "pykafkalog topics | head -1",
        "pykafkalog configs --broker 1 --all | head -1",
        "pykafkalog --help | head -1",
        "pykafkalog consume --help | head -1",
        "pykafkalog dump-log $LOGS/many-0 | head -1",
    ):
        code, printed = shell.run(command)
        assert code == 0, printed
        assert "BrokenPipe" not in printed
        assert len(printed.splitlines()) <= 1, printed
