"""`pip install pykafkalog` without an extra: its first hour, and one sentence for what it lacks."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.test_documented_commands import PARSERS
from tests.support.broker_process import BrokerProcess
from tests.support.command_line import pykafkalog
from tests.support.installation import Installation, in_environment
from tests.support.users_environment import make_plain_environment

EXTRAS = ("pyspark", "pyarrow", "duckdb", "pandas", "matplotlib", "fastavro", "pytest", "zstandard")


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory, wheel: Path) -> Installation:
    directory = tmp_path_factory.mktemp("plain") / "environment"
    make_plain_environment(directory, wheel)
    return in_environment(directory)


@pytest.fixture(scope="module")
def broker(
    tmp_path_factory: pytest.TempPathFactory, plain: Installation
) -> Iterator[BrokerProcess]:
    with BrokerProcess(tmp_path_factory.mktemp("broker"), installation=plain) as broker:
        yield broker


def run(plain: Installation, *words: str, stdin: str = "", codes: tuple[int, ...] = (0,)) -> str:
    """Run one command; return both outputs. It ends with one of `codes` and no traceback."""
    done = pykafkalog(*words, stdin=stdin, installation=plain)
    printed = done.stdout + done.stderr
    assert "Traceback" not in printed, printed
    assert done.returncode in codes, printed
    return printed


def test_nothing_else_is_there(plain: Installation) -> None:
    code = f"from importlib.util import find_spec; print([*filter(find_spec, {EXTRAS})])"
    assert plain.run([plain.python, "-c", code]).stdout == "[]\n"


def test_every_command_has_its_help(plain: Installation) -> None:
    assert len(PARSERS) > 20
    for program in PARSERS:
        assert run(plain, *program.split()[1:], "--help").startswith("usage: ")


def test_the_first_hour(plain: Installation, broker: BrokerProcess, tmp_path: Path) -> None:
    def at(command: str, *words: str, stdin: str = "") -> str:
        return run(plain, command, "-b", broker.bootstrap, *words, stdin=stdin)

    logs, pairs = str(broker.log_dir), "anna:hello\nbert:good morning\n"
    assert at("topics", "--create", "greetings") == "Created topic greetings.\n"
    for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
        words = ("greetings", "--key-separator", ":", "--compression", codec)
        assert "2 records" in at("produce", *words, stdin=pairs)
    few = ("--records", "100")
    everything = "hello\ngood morning\n" * 5
    assert at("consume", "greetings", "--from-beginning", "--exit") == everything
    grouped = ("greetings", "--group", "readers", "--from-beginning", "--exit")
    assert at("consume", *grouped) == everything
    assert "lag 0" in at("groups", "--describe", "readers")
    assert at("get-offsets", "greetings") == "greetings:0:10\n"
    assert "greetings" in at("topics", "--describe", "greetings")
    assert "retention.ms" in at("configs", "--topic", "greetings", "--add", "retention.ms=3600000")
    for command in ("cluster", "log-dirs", "transactions"):
        assert at(command)
    assert "records" in run(plain, "perf", "produce", "speed", "-b", broker.bootstrap, *few)
    in_use = (0, 1)  # a log in use may look unfinished
    assert "isvalid: true" in run(plain, "dump-log", f"{logs}/greetings-0", codes=in_use)
    assert run(plain, "fsck", logs, codes=in_use)
    assert "greetings-0" in run(plain, "explain-retention", logs)
    assert "greetings-0" in run(plain, "explain-cleaner", logs, "--all")
    assert "Deleted" in at("groups", "--delete", "readers")
    assert "complete" in run(plain, "completion", "bash")
    assert "Deleted" in at("topics", "--delete", "greetings")


def test_a_missing_extra_is_named_in_one_sentence(
    plain: Installation, broker: BrokerProcess, tmp_path: Path
) -> None:
    logs, to = str(broker.log_dir), ("-b", broker.bootstrap)
    lacking = {
        "sql": ("sql", "--log-dirs", logs, "select 1"),
        "spark": ("pipeline", "archive", "t", "--to", str(tmp_path / "lake"), "--available-now"),
        "plot": ("perf", "produce", "t", *to, "--plot", str(tmp_path / "plot.svg")),
        "avro": ("consume", "t", *to, "--avro", "--schema-registry", "http://127.0.0.1:1"),
    }
    for extra, words in lacking.items():
        printed = run(plain, *words, codes=(1,))
        assert printed.count("\n") == 1, printed
        assert f"python -m pip install 'pykafkalog[{extra}]'" in printed


@pytest.mark.parametrize("use", ["to_table()", "dataset()", "to_reader()", "batches().__next__()"])
def test_topics_in_arrow_say_what_they_need(
    plain: Installation, broker: BrokerProcess, use: str
) -> None:
    program = f"from pykafkalog.reader import open_topics; open_topics({str(broker.log_dir)!r})"
    for code, wanted in ((f"{program}.plan()", None), (f"{program}.{use}", "ModuleNotFoundError")):
        done = plain.run([plain.python, "-c", code], check=False)
        last = done.stderr.splitlines()[-1:] or [""]
        if wanted is None:
            assert done.returncode == 0, done.stderr
        else:
            assert re.search(rf"{wanted}: .*pyarrow.*pip install 'pykafkalog\[sql\]'", last[0])
