"""A run records the programs of which all tests ran, and leaves the entries of others alone."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.support.ecosystem.programs import PROGRAMS
from tests.support.ecosystem.recording import Recording
from tests.support.installation import ROOT

FAUST = next(program for program in PROGRAMS if program.name == "Faust")
FLINK = next(program for program in PROGRAMS if program.name == "Flink")


def report(test: str, when: str, outcome: str) -> Any:
    return SimpleNamespace(nodeid=test, when=when, outcome=outcome)


@pytest.fixture
def recording(tmp_path: Path) -> Recording:
    file = tmp_path / "results.json"
    file.write_text(json.dumps({"Faust": "as before", "a program of former times": {}}))
    return Recording(file)


def ran(recording: Recording, test: str, call: str = "passed", teardown: str = "passed") -> None:
    for when, outcome in (("setup", "passed"), ("call", call), ("teardown", teardown)):
        recording.pytest_runtest_logreport(report(test, when, outcome))


def written(recording: Recording) -> dict[str, Any]:
    recording.pytest_sessionfinish()
    said: dict[str, Any] = json.loads(recording.file.read_text())
    return said


def test_a_program_that_ran_is_written_down_with_its_version_and_others_stay(
    recording: Recording,
) -> None:
    ran(recording, f"{FLINK.tests[0]}::test_one")
    said = written(recording)
    assert said["Faust"] == "as before"
    assert {key: said["Flink"][key] for key in ("version", "tests", "passed")} == {
        "version": FLINK.version(),
        "tests": 1,
        "passed": 1,
    }
    assert list(said) == ["Flink", "Faust"]  # in the order of the table, and nothing that is gone


@pytest.mark.parametrize(
    "outcomes", [{"call": "failed"}, {"teardown": "failed"}, {"call": "skipped"}]
)
def test_what_failed_or_was_skipped_has_not_passed(
    recording: Recording, outcomes: dict[str, str]
) -> None:
    ran(recording, f"{FAUST.tests[0]}::test_one", **outcomes)
    ran(recording, f"{FAUST.tests[0]}::test_two")
    said = written(recording)["Faust"]
    assert (said["tests"], said["passed"]) == (2, 1)


def test_a_test_whose_setup_failed_has_not_passed(recording: Recording) -> None:
    recording.pytest_runtest_logreport(report(f"{FAUST.tests[0]}::test_one", "setup", "failed"))
    said = written(recording)["Faust"]
    assert (said["tests"], said["passed"]) == (1, 0)


def test_part_of_a_programs_tests_says_nothing(recording: Recording) -> None:
    ran(recording, f"{FAUST.tests[0]}::test_one")
    left_out: Any = SimpleNamespace(path=ROOT / FAUST.tests[0])
    recording.pytest_deselected([left_out])
    assert written(recording)["Faust"] == "as before"
