"""The wheel in a user's environment: it works beside their own modules, and its types are seen."""

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.broker_process import BrokerProcess
from tests.support.command_line import pykafkalog
from tests.support.installation import CHECKOUT, in_environment
from tests.support.reader_guide import guide_program
from tests.support.users_environment import OWN_MODULES, make_environment, pip, site_packages

OWN_PROGRAM = """
import sys
import broker, config, pipeline, protocol, storage.paths, tools.hammer
from pykafkalog.reader import PartitionView

own = (broker, config, pipeline, protocol, storage, storage.paths, tools.hammer)
print(*(module.MINE for module in own))
print(*(record.value.decode() for record in PartitionView(sys.argv[1]).records()))
"""

WRONG_PROGRAM = """
from pykafkalog import __version__, no_such_module  # type: ignore[attr-defined]
from pykafkalog.reader import LogDirView, PartitionView, RecordChunk
from pykafkalog.reader import NoSuchName  # type: ignore[attr-defined]

version: int = __version__  # type: ignore[assignment]
view = PartitionView(1)  # type: ignore[arg-type]
view.no_such_method()  # type: ignore[attr-defined]
for record in view.records():
    key: str = record.key  # type: ignore[assignment]
for name in LogDirView("/d").names():
    name.append()  # type: ignore[attr-defined]


def rows(chunk: RecordChunk) -> str:
    return chunk.keys()  # type: ignore[return-value]
"""
"""Each wrong line says so, and strict mode complains of a line that says so and is not wrong."""


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory, wheel: Path) -> Path:
    """A user's environment with the wheel installed."""
    directory = tmp_path_factory.mktemp("user") / "environment"
    make_environment(directory)
    pip(directory, "install", "--no-deps", "--no-index", str(wheel))
    return directory


@pytest.fixture
def broker(environment: Path, tmp_path: Path) -> Iterator[BrokerProcess]:
    with BrokerProcess(tmp_path / "broker", installation=in_environment(environment)) as broker:
        yield broker


def installed(environment: Path) -> tuple[set[str], dict[str, bytes]]:
    """Top-level names that are no links to dependencies, and the modules below them."""
    packages = site_packages(environment)
    here = [path for path in packages.iterdir() if not path.is_symlink()]
    modules = {
        str(file.relative_to(packages)): file.read_bytes()
        for path in here
        for file in ([path] if path.suffix == ".py" else path.rglob("*.py"))
    }
    return {path.name for path in here} - {"__pycache__"}, modules


def test_it_installs_one_name_beside_a_users_own_and_leaves_nothing(
    environment: Path, wheel: Path, tmp_path: Path
) -> None:
    info = "-".join(wheel.name.split("-")[:2]) + ".dist-info"
    own_names = {name.partition("/")[0] for name in OWN_MODULES}
    own = {name: content.encode() for name, content in OWN_MODULES.items()}
    names, modules = installed(environment)
    assert names == own_names | {"pykafkalog", info}
    assert modules.items() >= own.items()
    left = shutil.copytree(environment, tmp_path / "environment", symlinks=True)
    pip(left, "uninstall", "--yes", "pykafkalog")
    assert installed(left) == (own_names, own)
    assert list((left / "bin").glob("pykafkalog*")) == []


def test_records_go_in_and_out_and_are_read_beside_a_users_own_modules(
    environment: Path, broker: BrokerProcess, tmp_path: Path
) -> None:
    used = in_environment(environment)
    address = ("--bootstrap-server", broker.bootstrap)
    for words, stdin, wanted in (
        (["topics", *address, "--create", "mine"], "", "Created topic mine.\n"),
        (["produce", *address, "mine"], "one\ntwo\n", ""),
        (["consume", *address, "mine", "--from-beginning", "--exit"], "", "one\ntwo\n"),
    ):
        done = pykafkalog(*words, stdin=stdin, installation=used)
        assert (done.returncode, done.stdout) == (0, wanted), done.stderr
    program = tmp_path / "program.py"
    program.write_text(OWN_PROGRAM)
    printed = used.run([used.python, str(program), str(broker.log_dir / "mine-0")]).stdout
    assert printed.splitlines() == [
        "broker config pipeline protocol storage storage.paths tools",
        "one two",
    ]


def test_every_way_to_start_it_says_the_same_version(environment: Path) -> None:
    used = in_environment(environment)
    ways = (
        used.broker(),
        used.tool(),
        [used.python, "-m", "pykafkalog"],
        [used.python, "-m", "pykafkalog.broker"],
        [used.python, "-m", "pykafkalog.tools"],
    )
    said = {used.run([*way, "--version"]).stdout for way in ways}
    (words,) = {tuple(line.split()) for line in said}
    checkout = pykafkalog("--version", installation=CHECKOUT).stdout.split()
    assert words[:2] == tuple(checkout[:2])  # the form may differ


def test_data_of_the_package_can_be_reached(environment: Path) -> None:
    used = in_environment(environment)
    code = (
        "from importlib.resources import files;"
        "print((files('pykafkalog.config') / 'server.properties').read_text())"
    )
    assert "log.dirs=/tmp/kafka-logs" in used.run([used.python, "-c", code]).stdout


def test_a_users_programs_type_check_in_strict_mode_against_the_wheel(
    environment: Path, tmp_path: Path
) -> None:
    """The guide's program passes as it is, and what is wrong is found: types are no `Any`."""
    (tmp_path / "guide.py").write_text(guide_program("/tmp/kafka-logs"))
    (tmp_path / "wrong.py").write_text(WRONG_PROGRAM)
    used = in_environment(environment)
    done = subprocess.run(
        [
            *(sys.executable, "-m", "mypy", "--strict", "--config-file", ""),
            *("--python-executable", used.python, "--cache-dir", tmp_path / "cache"),
            *("guide.py", "wrong.py"),
        ],
        cwd=tmp_path,
        env=used.process_environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "no issues found in 2 source files" in done.stdout
