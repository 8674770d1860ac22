"""`pykafkalog dump-log` prints what Kafka 4.3.1's DumpLogSegments prints, line for line.

Every option is tried on files of Apache Kafka, files of this broker, messages of all formats, and
files that the test damaged. Masked is what comes from Java or from a flaw of the tool:

* `OptionalLong.empty` and `OptionalLong[5]` (here `none` and `5`);
* `-1 is followed by 7`: the tool reports a gap for any segment that begins above offset 0;
* the order of files on standard error, which is that of a HashMap;
* sections of standard error that Kafka's tool does not have.
"""

import re
import shutil
from collections.abc import Iterator
from difflib import unified_diff
from pathlib import Path

import pytest

from tests.support.kafka_jars import KAFKA_VERSION, ROOT, java
from tests.support.shared_directory import (
    SharedDirectory,
    commit_some,
    consume_in_group,
    make_topics,
    transact,
    write,
)
from tools.__main__ import main

pytestmark = pytest.mark.conformance

DUMP = "org.apache.kafka.tools.DumpLogSegments"
KINDS = (".log", ".index", ".timeindex", ".txnindex", ".snapshot")
INDEXES = (".index", ".timeindex")
KAFKAS_HEADINGS = (
    "Mismatches in",
    "Found timestamp mismatch in",
    "Found out of order timestamp in",
    "The following indexed offsets",
    "Non-consecutive offsets in",
)
ANY_OPTIONS = (
    (),
    ("--deep-iteration",),
    ("--print-data-log",),
    ("--print-data-log", "--skip-record-metadata"),
    ("--deep-iteration", "--max-bytes", "4000"),
    ("--index-sanity-check",),
    ("--verify-index-only",),
    ("--max-message-size", "1048576"),
)

Said = tuple[list[str], dict[str, list[str]]]
"""Lines of standard output; lines of standard error by heading."""


@pytest.fixture(scope="module", params=["kafka", "ours"])
def log_dir(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cleanly stopped log directory with records of every codec, transactions and commits."""
    shared = SharedDirectory(tmp_path_factory.mktemp(request.param), KAFKA_VERSION)
    with shared.kafka() if request.param == "kafka" else shared.ours() as broker:
        make_topics(broker.bootstrap)
        write(broker.bootstrap, "mark")
        transact(broker.bootstrap, "id")
        consume_in_group(broker.bootstrap, 50)
        commit_some(broker.bootstrap, {"raw-0": 0})
        broker.stop()
    return shared.log_dir


def files_of(directories: list[Path], kinds: tuple[str, ...] = KINDS) -> list[Path]:
    files = [
        file
        for directory in directories
        for file in sorted(directory.iterdir())
        if file.suffix in kinds
    ]
    assert files
    return files


def kafkas(files: list[Path], options: tuple[str, ...]) -> Said:
    result = java(DUMP, "--files", ",".join(map(str, files)), *options)
    text = re.sub(r"OptionalLong\[(-?\d+)\]", r"\1", result.stdout)
    return text.replace("OptionalLong.empty", "none").splitlines(), headed(result.stderr)


def ours(files: list[Path], options: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> Said:
    main(["dump-log", "--files", ",".join(map(str, files)), *options])
    said = capsys.readouterr()
    return said.out.splitlines(), headed(said.err)


def headed(errors: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in errors.splitlines():
        if line.startswith((" ", "Indexed offset")):
            if not line.strip().startswith("-1 is followed by"):
                lines.append(line)
        else:
            lines = found.setdefault(line, [])
    known = {h: lines for h, lines in found.items() if h.startswith(KAFKAS_HEADINGS)}
    return {heading: lines for heading, lines in known.items() if lines}


def compare(
    files: list[Path], options: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> Said:
    expected = kafkas(files, options)
    got = ours(files, options, capsys)
    different = unified_diff(expected[0], got[0], "kafka", "ours", lineterm="", n=0)
    assert "\n".join(different) == ""
    assert got[1] == expected[1]
    return got


@pytest.mark.parametrize("options", ANY_OPTIONS, ids=" ".join)
def test_s_fmt_1_every_file_of_partitions(
    log_dir: Path, options: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    directories = [*log_dir.glob("plain-*"), *log_dir.glob("transacted-*")]
    out, _ = compare(files_of(directories), options, capsys)
    assert len(out) > 20


@pytest.mark.parametrize(
    ("topic", "decoder", "word"),
    [
        ("__consumer_offsets", "--offsets-decoder", '"group":"readers"'),
        ("__transaction_state", "--transaction-log-decoder", '"transactionalId":"id-id"'),
    ],
)
@pytest.mark.parametrize("more", [(), ("--skip-record-metadata",)], ids=["all", "contents"])
def test_s_fmt_1_records_of_the_coordinators(
    log_dir: Path,
    topic: str,
    decoder: str,
    word: str,
    more: tuple[str, ...],
    capsys: pytest.CaptureFixture[str],
) -> None:
    out, _ = compare(files_of(list(log_dir.glob(f"{topic}-*"))), (decoder, *more), capsys)
    assert any(word in line for line in out)


@pytest.mark.parametrize("options", [("--deep-iteration",), ("--print-data-log",)], ids=" ".join)
def test_every_format_and_codec(
    tmp_path: Path, options: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    files = []
    for golden in sorted((ROOT / "tests/golden/records").glob("*.bin")):
        directory = tmp_path / golden.stem
        directory.mkdir()
        file = directory / f"{0:020}.log"
        shutil.copyfile(golden, file)
        files.append(file)
    out, _ = compare(files, options, capsys)
    assert {"magic: 0", "magic: 1", "magic: 2"} <= set(re.findall(r"magic: \d", "\n".join(out)))


@pytest.mark.parametrize("log_dir", ["kafka"], indirect=True)
@pytest.mark.parametrize("options", [(), ("--deep-iteration",)], ids=" ".join)
def test_control_records_of_kraft(
    log_dir: Path, options: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    metadata = log_dir / "__cluster_metadata-0"
    files = [*files_of([metadata]), *metadata.glob("*.checkpoint")]
    out, _ = compare(files, options, capsys)
    told = {word for line in out for word in re.findall(r"LeaderChange|Snapshot\w+", line)}
    assert told == ({"LeaderChange", "SnapshotHeader", "SnapshotFooter"} if options else set())


def test_small_files_that_kafkas_tool_does_not_read(
    log_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each number and name of the file is printed, and nothing else."""
    partition = log_dir / "plain-0"
    assert main(["dump-log", str(log_dir), str(partition / "leader-epoch-checkpoint")]) == 0
    assert main(["dump-log", str(partition / "partition.metadata")]) == 0
    shown: dict[str, list[str]] = {}
    for line in capsys.readouterr().out.splitlines():
        if line.startswith("Dumping "):
            lines = shown.setdefault(Path(line).name, [])
        else:
            lines.append(line)
    names = ("recovery-point", "replication", "log-start", "cleaner")
    for name in (f"{name}-offset-checkpoint" for name in names):
        if (log_dir / name).exists():
            entries = (log_dir / name).read_text().splitlines()[2:]
            told = [line for line in shown.pop(name) if not line.endswith(" is empty.")]
            assert [" ".join(line.split()[1::2]) for line in told] == entries
    epochs = (partition / "leader-epoch-checkpoint").read_text().splitlines()[2:]
    assert [" ".join(line.split()[1::2]) for line in shown["leader-epoch-checkpoint"]] == epochs
    meta = dict(
        line.split("=")
        for line in (log_dir / "meta.properties").read_text().splitlines()
        if not line.startswith("#")
    )
    owner = dict(re.findall(r"(\w+): (\S+)", shown["meta.properties"][0]))
    assert owner["clusterId"] == meta["cluster.id"]
    assert owner["nodeId"] == meta["node.id"]
    assert owner["directoryId"] == meta["directory.id"]
    topic_id = (partition / "partition.metadata").read_text().split()[-1]
    assert shown["partition.metadata"] == [f"version: 0 topicId: {topic_id}"]


def damaged(log_dir: Path, directory: Path) -> Iterator[Path]:
    """Copies of a partition, each with one damage."""

    def copy(name: str) -> Path:
        shutil.copytree(log_dir / "plain-0", directory / name)
        return directory / name

    def change(file: Path, position: int, data: bytes) -> None:
        with file.open("r+b") as opened:
            opened.seek(position)
            opened.write(data)

    yield (torn := copy("torn-0"))
    with (torn / f"{0:020}.log").open("ab") as file:
        file.write((torn / f"{0:020}.log").read_bytes()[:50])
    yield (flipped := copy("crc-0"))
    change(flipped / f"{0:020}.log", 17, b"\0\0\0\0")
    yield (index := copy("index-0"))
    change(index / f"{0:020}.index", 8, (3).to_bytes(4, "big"))
    yield (time := copy("time-0"))
    change(time / f"{0:020}.timeindex", 12, (3).to_bytes(8, "big"))
    yield (order := copy("order-0"))
    change(order / f"{0:020}.timeindex", 12 + 8, (3).to_bytes(4, "big"))
    yield (padded := copy("padded-0"))
    for suffix in (".index", ".timeindex"):
        with (padded / f"{0:020}{suffix}").open("ab") as file:
            file.write(bytes(2400))


@pytest.mark.parametrize("options", [(), ("--print-data-log", "--verify-index-only")], ids=str)
def test_damage_is_told_in_kafkas_words(
    log_dir: Path,
    tmp_path: Path,
    options: tuple[str, ...],
    capsys: pytest.CaptureFixture[str],
) -> None:
    out, errors = compare(files_of(list(damaged(log_dir, tmp_path))), options, capsys)
    assert "Found 50 invalid bytes at the end of 00000000000000000000.log" in out
    assert sum(line.endswith("isvalid: false") for line in out) == 1
    assert {heading.split(" in ")[0] for heading in errors} >= {
        "Mismatches",
        "Found timestamp mismatch",
        "Found out of order timestamp",
        "The following indexed offsets are not found",
    }
