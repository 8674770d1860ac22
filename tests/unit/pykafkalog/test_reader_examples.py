"""The public reader: its documentation is run, and it hands out what it says."""

import doctest
import importlib
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import pykafkalog.reader
from tests.support.installation import ROOT
from tests.support.readable_directory import write_log_dir
from tests.support.reader_guide import EXAMPLE_DIRECTORY, guide_program


@pytest.fixture
def log_dir(tmp_path: Path) -> Path:
    directory = tmp_path / "kafka-logs"
    write_log_dir(directory)
    return directory


def test_the_worked_example_shows_what_is_there(log_dir: Path) -> None:
    text = (pykafkalog.reader.__doc__ or "").replace(EXAMPLE_DIRECTORY, str(log_dir))
    example = doctest.DocTestParser().get_doctest(text, {}, "reader", None, None)
    assert len(example.examples) == 6
    report: list[str] = []
    result = doctest.DocTestRunner().run(example, out=report.append)
    assert result.failed == 0, "".join(report)


def test_the_guide_can_be_followed(log_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, Any] = {}
    exec(guide_program(str(log_dir)), names)
    assert names["values"] == [b"2 teapots", b"1 kettle", None]
    assert names["tombstones"] == 1
    printed = capsys.readouterr().out.splitlines()
    assert printed[0] == "1 1700000000001 b'bert' b'1 kettle' []"
    assert "0 at the end [] []" in printed
    assert any("node_id=0" in line for line in printed)


def test_all_that_is_public_is_there_and_nothing_twice() -> None:
    names = pykafkalog.reader.__all__
    assert len(set(names)) == len(names)
    for name in names:
        assert getattr(pykafkalog.reader, name) is not None
    with pytest.raises(AttributeError, match="has no attribute 'Nothing'"):
        pykafkalog.reader.Nothing  # noqa: B018


def test_the_guide_names_every_column_and_every_error() -> None:
    text = (ROOT / "docs/reader.md").read_text()
    errors = [n for n in pykafkalog.reader.__all__ if n.endswith("Error") or "Corrupt" in n]
    assert [name for name in [*pykafkalog.reader.RECORD_COLUMNS, *errors] if name not in text] == []


def test_values_are_read_without_numpy() -> None:
    code = "import sys, pykafkalog.reader; sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False).returncode == 0


def test_the_version_is_the_distributions() -> None:
    module = importlib.import_module("pykafkalog")
    assert re.fullmatch(r"\d+\.\d+\.\d+", module.__version__)
    assert not hasattr(module, "reading")
