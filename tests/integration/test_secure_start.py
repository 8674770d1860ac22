"""The first commands of docs/security.md, as they stand: they lead to a broker that is closed."""

import os
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.installation import ROOT, under_test
from tests.support.ports import free_port
from tests.support.waiting import wait_until

PAGE = (ROOT / "docs" / "security.md").read_text()
FIRST, SECOND = re.findall(r"^```text\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)[:2]
BROKER = "pykafkalog-broker secure.properties\n"


class Reader:
    """Types the commands of the page, with another port and other directories."""

    def __init__(self, directory: Path) -> None:
        used = under_test()
        programs = used.directory / "bin" if used.package else Path(used.python).parent
        self._directory = directory
        self._port = str(free_port())
        path = f"{programs}:{os.environ['PATH']}"
        self._environment = {**used.process_environment(), "PATH": path}

    def here(self, text: str) -> str:
        """The text of the page, for this machine."""
        return text.replace("9093", self._port).replace("/tmp/tls", str(self._directory / "tls"))

    def types(self, commands: str, answer: str) -> subprocess.CompletedProcess[str]:
        """Run commands in a shell; `answer` is their standard input."""
        return subprocess.run(
            ["bash", "-ec", self.here(commands)],
            cwd=self._directory,
            env=self._environment,
            input=answer,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    @contextmanager
    def starts_the_broker(self) -> Iterator[None]:
        """The broker runs, with its data in the directory."""
        out = self._directory / "broker.out"
        words = [*BROKER.split(), "--override", f"log.dirs={self._directory / 'logs'}"]
        with out.open("wb") as file:
            broker = subprocess.Popen(
                ["env", *words],
                cwd=self._directory,
                env=self._environment,
                stdout=file,
                stderr=subprocess.STDOUT,
            )
        try:
            wait_until(lambda: "Kafka Server started" in out.read_text(), 30)
            yield
        finally:
            broker.terminate()
            broker.wait(30)


def test_from_nothing_to_a_broker_that_is_closed(tmp_path: Path) -> None:
    reader = Reader(tmp_path)
    before, started, rest = FIRST.partition(BROKER)
    assert (started, rest) == (BROKER, "")
    settings = f"log.dirs={tmp_path / 'logs'}\nEND\n"
    done = reader.types(before.replace("END\npyk", f"{settings}pyk"), "secret of admin\n")
    assert done.returncode == 0, done.stderr
    with reader.starts_the_broker():
        second = SECOND.replace("the password of admin", "secret of admin")
        done = reader.types(second, "secret of alice\n")
        assert done.returncode == 0, done.stderr
        assert "User:alice" in done.stdout
        as_alice = (
            "sed 's/=admin$/=alice/; s/of admin/of alice/' admin.properties > alice.properties\n"
            "pykafkalog produce -b localhost:9093 -F alice.properties "
        )
        done = reader.types(f"{as_alice} orders", "a record\n")
        assert done.returncode == 0, done.stderr
        done = reader.types(f"{as_alice} others", "a record\n")
        assert "authorization failed" in done.stderr
        done = reader.types("pykafkalog topics -b localhost:9093", "")
        assert done.returncode == 1
