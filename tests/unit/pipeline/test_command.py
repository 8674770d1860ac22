"""`pykafkalog pipeline` before Spark is there."""

import subprocess
import sys

import pytest

from pipeline import command
from pipeline.errors import PipelineError
from tests.support.installation import ROOT

IMPORTED = """
import sys
from pykafkalog import commands
sys.argv = ["pykafkalog", *sys.argv[1:]]
try:
    commands.command_line()
except SystemExit:
    pass
heavy = ("pyspark", "pyarrow", "pandas", "confluent_kafka", "rich", "duckdb", "pipeline")
print("imported:", *(name for name in heavy if name in sys.modules))
"""


def imported_by(*words: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", IMPORTED, *words],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.splitlines()[-1].split()[1:]


def test_other_commands_do_not_import_the_pipeline() -> None:
    assert imported_by("--help") == []


def test_the_arguments_of_the_pipeline_do_not_import_spark() -> None:
    assert imported_by("pipeline", "--help") == ["pipeline"]


def test_a_missing_extra_is_said_with_the_line_that_installs_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(command, "NEEDED", ("sys", "no_such_module"))
    with pytest.raises(PipelineError, match=r"no_such_module .*pip install 'pykafkalog\[spark\]'"):
        command.require_extra()
