"""Isolates commands that name ports and paths of a machine, such as 9092 and /tmp/kafka-logs.

`run_alone(commands, directory)` runs commands one after the other in one shell, in their own
namespaces for network, mounts and processes (`unshare`): /tmp is empty, every port of localhost is
free, and no process that they start outlives the run. So the commands of a page run unchanged,
whatever else runs on this machine.

* A command that starts a broker goes on in the background once the broker has started; an earlier
  broker is stopped if both need port 9092, and by `adopt`.
* A command that would run until Ctrl-C gets it after `UNTIL_CTRL_C_S` seconds.
* Before each command, things that examples name are made again if they are missing (`_World`).

Run as a program, this module is the part that runs within the namespaces.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parents[2]
UNTIL_CTRL_C_S: Final = 4.0
PATIENCE_S: Final = 240.0
BROKER: Final = re.compile(r"(scripts/broker|pykafkalog-broker)(?!.*--(help|version))")
STAYS: Final = re.compile(
    r"pykafkalog consume (?!.*(--exit|-n |--last|--max|--until))|--watch|--follow|--interval|"
    r"pykafkalog healthcheck --wait"
)
TOPICS: Final = (
    "orders",
    "payments",
    "clicks",
    "greetings",
    "copy",
    "logs",
    "log-a",
    "shop.a",
    "web-orders",
)
GROUP: Final = "billing"
ACCESS: Final = """
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
super.users=User:ANONYMOUS
"""
"""There may be access rules, and they bind no example."""


@dataclass(frozen=True, slots=True)
class Done:
    """The result of a command."""

    code: int
    printed: str


def possible() -> bool:
    """Return whether this system allows namespaces."""
    try:
        done = subprocess.run(["unshare", *_SPACES, "true"], capture_output=True, check=False)
    except FileNotFoundError:
        return False
    return done.returncode == 0


_SPACES: Final = ("-rmnp", "--fork", "--kill-child", "--mount-proc")


def jars_of_this_home() -> str:
    """PYSPARK_SUBMIT_ARGS with which a process that has another home finds the jars of this one."""
    return f"--conf spark.jars.ivy={Path.home()}/.ivy2 pyspark-shell"


def run_alone(
    commands: Sequence[str], directory: Path, environment: Path = ROOT / ".venv"
) -> list[Done]:
    """Run each command to its end; `directory` is an empty directory that becomes /tmp.

    `environment` is the virtual environment whose commands are on the path.
    """
    mounts = (
        'root=$1; shift; while [ "$1" != -- ]; do case "$1" in /tmp/*)'
        ' mkdir -p "$root${1#/tmp}" && mount --rbind "$1" "$root${1#/tmp}" || exit 1;; esac; shift;'
        ' done; shift; mount --rbind "$root" /tmp && ip link set lo up && exec "$@"'
    )
    seen = [str(ROOT), str(environment.absolute())]
    done = subprocess.run(
        [
            *("unshare", *_SPACES, "bash", "-c", mounts, "bash", str(directory), *seen, "--"),
            *(sys.executable, str(Path(__file__)), str(environment.absolute())),
        ],
        input=json.dumps(list(commands)),
        stdout=subprocess.PIPE,
        text=True,
        timeout=1500,
        check=False,
        cwd=ROOT,
    )
    assert done.returncode == 0, done.stdout
    return [Done(*one) for one in json.loads(done.stdout.splitlines()[-1])]


# ---- within


class _Shell:
    """One bash that gets commands through a pipe, so that their standard input is /dev/null."""

    def __init__(self, directory: Path, environment: dict[str, str]) -> None:
        reading, self._commands = os.pipe()
        self._output = Path(tempfile.mkstemp(prefix="output-")[1])
        with self._output.open("wb") as out:
            self._process = subprocess.Popen(
                ["bash", f"/dev/fd/{reading}"],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                pass_fds=[reading],
                cwd=directory,
                env=environment,
            )
        os.close(reading)
        self.tell("set -o pipefail")

    def tell(self, line: str) -> None:
        os.write(self._commands, f"{line}\n".encode())

    def run(self, command: str, interrupt: bool) -> Done:
        begin = self._output.stat().st_size
        self.tell(f"{command}\nprintf '\\n<%s ended>\\n' $?")
        deadline = time.monotonic() + PATIENCE_S
        ctrl_c = time.monotonic() + (UNTIL_CTRL_C_S if interrupt else PATIENCE_S)
        while True:
            text = self._output.read_bytes()[begin:].decode("utf-8", "replace")
            found = re.search(r"\n<(\d+) ended>\n\Z", text)
            if found is not None:
                return Done(int(found[1]), text[: found.start()])
            if time.monotonic() > ctrl_c:
                ctrl_c = deadline
                self._interrupt(signal.SIGINT)
            if time.monotonic() > deadline or self._process.poll() is not None:
                self._interrupt(signal.SIGKILL)
                return Done(-1, f"{text}\n(did not end)")
            time.sleep(0.02)

    def _interrupt(self, number: int) -> None:
        import psutil

        for child in psutil.Process(self._process.pid).children():
            if child.pid not in _brokers:
                child.send_signal(number)


_brokers: dict[int, bool] = {}
"""Whether a broker is on port 9092, by process id."""


class _Brokers:
    """The brokers that the commands start."""

    def __init__(self, shell: _Shell) -> None:
        self._shell = shell
        self._number = 0

    @property
    def serve(self) -> bool:
        return any(_brokers.values())

    def start(self, command: str) -> Done:
        usual = ":0" not in command
        if usual:
            self.stop()
        self._number += 1
        out = Path(f"/tmp/broker-{self._number}.out")
        self._shell.tell(f"{command.rstrip('& ')} > {out} 2>&1 & echo $! > {out}.pid")
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            text = out.read_text() if out.exists() else ""
            if "Kafka Server started" in text:
                _brokers[int(Path(f"{out}.pid").read_text())] = usual
                if not usual:
                    self.stop(usual=False)
                return Done(0, text)
            pid_file = Path(f"{out}.pid")
            if pid_file.exists() and _state(int(pid_file.read_text() or os.getpid())) == "Z":
                break
            time.sleep(0.05)
        return Done(1, out.read_text())

    def stop(self, usual: bool = True) -> None:
        for pid in [pid for pid, one in _brokers.items() if one == usual]:
            del _brokers[pid]
            os.kill(pid, signal.SIGTERM)
            while Path(f"/proc/{pid}").exists() and "Z" not in _state(pid):
                time.sleep(0.02)


def _state(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return "Z"


class _World:
    """Things that examples name: topics with records, a group, a transactional id, files."""

    def __init__(self, directory: Path, commands: Sequence[str]) -> None:
        self._directory = directory
        made = re.findall(r"--create ([\w.-]+)", " ".join(commands))
        self._made_by_page = set(made)
        self._changed: set[str] = set()
        """Topics to make again, because an example has changed their configs."""

    def write_files(self) -> None:
        text = (ROOT / "config/server.properties").read_text() + ACCESS
        for name in ("server.properties", "my.properties"):
            (self._directory / name).write_text(text)
        lines = "".join(f"customer-{n % 7}:book {n}\n" for n in range(30))
        for name in ("orders.txt", "a.log", "b.log"):
            (self._directory / name).write_text(lines)
        records = "".join(f'{{"key": "{n}", "value": "v{n}"}}\n' for n in range(10))
        (self._directory / "orders.jsonl").write_text(records)
        (self._directory / "exported.csv").write_text("orders,0,1\n")
        (self._directory / "secret.txt").write_text("a long secret\n")
        people = "id,name,at\n1,Ada,2026-01-01 00:00:00\n2,Max,2026-01-02 00:00:00\n"
        (self._directory / "people.csv").write_text(people)
        for name in ("scripts", "config", ".venv", "pyproject.toml", "publishing"):
            (self._directory / name).symlink_to(ROOT / name)
        Path("/tmp/home/.local/share/bash-completion/completions").mkdir(parents=True)
        Path("/tmp/home/.config/fish/completions").mkdir(parents=True)
        Path("/tmp/home/.zfunc").mkdir()

    def prepare(self, command: str, single: bool) -> None:
        """Prepare a command, while a broker serves. `single`: commands do not build on another."""
        from confluent_kafka import Consumer, Producer, TopicPartition
        from confluent_kafka.admin import AdminClient, NewTopic

        settings = {"bootstrap.servers": "localhost:9092", "log_level": 0}
        admin = AdminClient(settings)
        there = set(admin.list_topics(timeout=20).topics)
        creates = set(re.findall(r"--create ([\w.-]+)", command))
        spared = creates if single else self._made_by_page
        gone = {name for name in creates & there if single or name not in self._made_by_page}
        gone |= self._changed & there
        for future in admin.delete_topics(list(gone)).values() if gone else ():
            future.result(20)
        there -= gone
        missing = [name for name in TOPICS if name not in there and name not in spared]
        if missing:
            new = [NewTopic(name, 3, 1) for name in missing]
            for future in admin.create_topics(new).values():
                future.result(20)
            producer = Producer(settings)
            for name in missing:
                for n in range(4500):
                    value = f"v{n}" if name != "web-orders" else f'{{"customer": "c{n % 9}"}}'
                    producer.produce(name, value, f"eu-{n % 50}", n % 3)
            assert producer.flush(20) == 0
        self._changed = (
            set(re.findall(r"configs --topic ([\w.-]+) --add", command)) if single else set()
        )
        if "orders" in spared:
            return
        if GROUP in command and "transactions" in command:
            writer = Producer({**settings, "transactional.id": GROUP})
            writer.init_transactions(20)
            writer.begin_transaction()
            writer.produce("orders", "a", partition=0)
            writer.commit_transaction(20)
        elif GROUP in command:
            consumer = Consumer({**settings, "group.id": GROUP})
            places = [TopicPartition("orders", n, 450) for n in range(3)]
            committed = consumer.committed(places, timeout=20)
            if single or all(place.offset < 0 for place in committed):
                consumer.commit(offsets=places, asynchronous=False)
            consumer.close()
        self._copy_files()

    def _copy_files(self) -> None:
        """Make directories and files that examples name without a path, once."""
        logs = Path("/tmp/kafka-logs")
        if (self._directory / "DIR").exists() or not (logs / "orders-0").exists():
            return
        first_copy = self._directory / "DIR"
        # A running broker renames small files meanwhile, which `cp` then skips.
        subprocess.run(["cp", "-r", logs, first_copy], stderr=subprocess.DEVNULL, check=False)
        for copy in ("/tmp/disk1/kafka", "/tmp/copies/logs", "/tmp/copies/kafka-logs"):
            ignored = shutil.ignore_patterns(".lock", "metadata.sqlite*", "*.tmp")
            shutil.copytree(first_copy, copy, ignore=ignored)
        Path("/tmp/disk2/kafka").mkdir(parents=True)
        shutil.copy(logs / "meta.properties", "/tmp/disk2/kafka")
        # The partitions of __consumer_offsets are created by the first group.
        for name in ("orders-0", "__consumer_offsets-7"):
            (self._directory / name).symlink_to(logs / name)


def _prepare_lake(command: str, shell: _Shell) -> None:
    """Prepare an example of the pipeline: without a table for an archive, with one for others."""
    shutil.rmtree("/tmp/lake", ignore_errors=True)
    needed = re.search(r"pipeline (?:compact|restore) (/tmp/lake/[\w-]+)", command)
    if needed is not None:
        made = shell.run(
            f"pykafkalog pipeline archive orders --to {needed[1]} --available-now", False
        )
        assert made.code == 0, made.printed
        if "restore" in command and "--topic-prefix" not in command and "--rename" not in command:
            # A restore refuses a topic whose records are not its own.
            shell.run("pykafkalog topics --delete orders", False)


_ELSEWHERE: Final = re.compile(r"(?<=[\s=,'\"])(/disk1|/disk2|/data|/lake|/copies|/mnt)(?=/)")
"""Directories at the root, which are made in /tmp instead."""


def main() -> None:
    """Run the commands of standard input; print the results as JSON."""
    commands: list[str] = json.load(sys.stdin)
    single = commands[:1] == ["# each for itself"]
    commands = commands[single:]
    directory = Path("/tmp/reader")
    directory.mkdir()
    environment = {
        **os.environ,
        "PATH": f"{sys.argv[1]}/bin:{os.environ['PATH']}",
        "HOME": "/tmp/home",
        "COLUMNS": "80",
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_SUBMIT_ARGS": jars_of_this_home(),
    }
    world = _World(directory, commands)
    world.write_files()
    shell = _Shell(directory, environment)
    brokers = _Brokers(shell)
    if not any(BROKER.match(command) for command in commands):
        brokers.start("pykafkalog-broker server.properties")
    results: list[Any] = []
    for command in commands:
        placed = _ELSEWHERE.sub(r"/tmp\1", command)
        if BROKER.match(placed):
            done = brokers.start(placed)
        else:
            if "pykafkalog adopt" in placed:
                brokers.stop()
            elif brokers.serve:
                world.prepare(placed, single)
            elif single:
                brokers.start("pykafkalog-broker server.properties")
                world.prepare(placed, single)
            if single and "pykafkalog pipeline" in placed:
                _prepare_lake(placed, shell)
            done = shell.run(placed, STAYS.search(placed) is not None)
        results.append([done.code, done.printed])
    brokers.stop()
    sys.stdout.write("\n" + json.dumps(results) + "\n")


if __name__ == "__main__":
    main()
