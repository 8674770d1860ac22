"""The tables of programs say what the last run said, and leave out no program that is tried."""

import json
from pathlib import Path

import pytest

from tests.support.ecosystem.programs import PROGRAMS
from tests.support.ecosystem.table import PAGES, RESULTS, short_table, with_table
from tests.support.installation import ROOT


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_has_the_table_of_the_last_run(page: Path) -> None:
    made = with_table(page.read_text(), PAGES[page](json.loads(RESULTS.read_text())))
    assert page.read_text() == made, "run scripts/ecosystem-table"


def test_each_program_was_tried_in_the_version_that_the_tests_use() -> None:
    results = json.loads(RESULTS.read_text())
    assert list(results) == [program.name for program in PROGRAMS], "run scripts/ecosystem"
    for program in PROGRAMS:
        if program.tests[0].startswith("tests/ecosystem/"):  # their versions are pinned
            assert results[program.name]["version"] == program.version(), "run scripts/ecosystem"


def test_each_test_of_the_ecosystem_belongs_to_a_program() -> None:
    listed = {file for program in PROGRAMS for file in program.tests}
    assert [file for file in listed if not (ROOT / file).exists()] == []
    there = {str(path.relative_to(ROOT)) for path in (ROOT / "tests/ecosystem").glob("test_*.py")}
    assert there <= listed


def test_a_program_that_fails_is_not_said_to_work() -> None:
    said = {PROGRAMS[0].name: {"version": "1", "tests": 3, "passed": 2, "date": "2026-01-01"}}
    assert "**1 of 3 tests fail**" in short_table(said)
    assert "works" not in short_table(said)


def test_a_page_without_a_place_for_the_table_is_refused() -> None:
    with pytest.raises(ValueError, match="programs"):
        with_table("# a page", "| |")
