"""A stage repeats what failed, and says which failures were chance: on small files of tests."""

from pathlib import Path

import pytest

from tests.running import report
from tests.running.stage import MOST_REPEATED, ROOT, Failure, Stage, StageResult

COIN = """
from pathlib import Path

def test_tossed():
    seen = Path(__file__).with_name("seen")
    if not seen.exists():
        seen.touch()
        print("%3|1795773731.465|FAIL|rdkafka#producer-20| [thrd]: Connection refused")
        raise ValueError("the coin fell\\non its edge")

def test_sound():
    pass
"""


@pytest.fixture
def play(tmp_path: Path):
    """Run a file with these tests as a stage, in two processes and then in one."""

    def run(text: str, *words: str) -> StageResult:
        file = tmp_path / "test_it.py"
        file.write_text(text)
        own = ("-c", "/dev/null", f"--rootdir={tmp_path}", "-p", "no:cacheprovider")
        stage = Stage(
            name="stage",
            words=(*own, "-W", "ignore", *words, str(file)),
            side_by_side=("-n", "2"),
            environment={"PYTHONPATH": str(ROOT)},
            directory=tmp_path,
        )
        return stage.run(tmp_path)

    return run


def test_a_test_that_fails_once_is_unsteady(play, tmp_path: Path) -> None:
    result = play(COIN)
    assert (result.passed, list(result.failed)) == (1, [])
    assert result.unsteady == (Failure("test_it.py::test_tossed", "ValueError: the coin fell"),)
    assert not report.has_failed([result])
    last = report.text([result]).splitlines()[-1]
    assert last == "UNSTEADY test_it.py::test_tossed - ValueError: the coin fell"
    assert "rdkafka#producer-20" in (tmp_path / "stage.clients").read_text()


def test_a_test_that_fails_twice_has_failed(play) -> None:
    result = play(
        "import pytest\n@pytest.mark.parametrize('n', [1, 2])\ndef test_x(n): assert n == 1"
    )
    assert (result.passed, result.unsteady) == (1, ())
    (failure,) = result.failed
    assert failure.test == "test_it.py::test_x[2]"
    assert report.has_failed([result])
    assert report.text([result]).splitlines()[-1].startswith("FAILED test_it.py::test_x[2] - ")


SECOND_TIME = """
import pytest
from pathlib import Path

def test_x():
    seen = Path(__file__).with_name("seen")
    if seen.exists():
        {then}
    seen.touch()
    assert False, "for a reason"
"""


@pytest.mark.parametrize("then", ["pytest.skip('no broker')", "raise SystemExit"])
def test_only_a_test_that_passes_when_it_is_repeated_is_unsteady(play, then: str) -> None:
    result = play(SECOND_TIME.format(then=then))
    assert (result.passed, result.unsteady) == (0, ())
    assert [failure.test for failure in result.failed] == ["test_it.py::test_x"]
    assert "for a reason" in result.failed[0].reason


def test_a_test_that_is_not_found_again_has_failed(play) -> None:
    result = play(
        "import os\nfrom pathlib import Path\n"
        "seen = Path(__file__).with_name('seen')\n"
        "if not seen.exists():\n"
        "    def test_x(): seen.touch(); assert False"
    )
    assert ([f.test for f in result.failed], result.unsteady) == (["test_it.py::test_x"], ())


def test_a_test_whose_fixture_ends_in_an_error_has_not_passed(play) -> None:
    result = play(
        "import pytest\n"
        "@pytest.fixture\ndef opened():\n    yield\n    raise ValueError('left open')\n"
        "def test_x(opened): pass"
    )
    assert (result.passed, result.unsteady) == (0, ())
    assert result.failed == (Failure("test_it.py::test_x", "ValueError: left open"),)


def test_what_passed_is_not_repeated(play, tmp_path: Path) -> None:
    play(COIN + "\n\ndef test_counted():\n    with open('runs', 'a') as f: f.write('x')\n")
    assert (tmp_path / "runs").read_text() == "x"


def test_a_worker_that_dies_is_a_failure_of_its_test(play) -> None:
    result = play("import os, signal\ndef test_x(): os.kill(os.getpid(), signal.SIGKILL)")
    (failure,) = result.failed
    assert failure.test == "test_it.py::test_x"
    assert "crashed" in failure.reason


def test_failures_beyond_chance_are_not_repeated(play, tmp_path: Path) -> None:
    result = play(
        "import pytest\n"
        f"@pytest.mark.parametrize('n', range({MOST_REPEATED + 1}))\n"
        "def test_x(n): assert False"
    )
    assert len(result.failed) == MOST_REPEATED + 1
    assert not (tmp_path / "stage-again").exists()


def test_a_file_that_cannot_be_read_is_a_failure(play) -> None:
    result = play("import nothing_of_that_name")
    assert report.has_failed([result])
    assert any("nothing_of_that_name" in failure.reason for failure in result.failed)


def test_words_that_pytest_does_not_take_are_a_failure(play) -> None:
    result = play("def test_x(): pass", "--no-such-option")
    assert report.has_failed([result])
    assert "--no-such-option" in result.failed[0].reason


def test_no_test_chosen_is_no_failure(play) -> None:
    assert not report.has_failed([play("def test_x(): pass", "-k", "nothing")])


def unsteady(*failures: Failure) -> StageResult:
    return StageResult("stage", 1, unsteady=failures)


def test_more_than_three_unsteady_tests_are_a_failure() -> None:
    chance = [Failure(f"test_{n}.py::test_x", "why") for n in range(4)]
    assert not report.has_failed([unsteady(*chance[:2]), unsteady(chance[2])])
    assert report.has_failed([unsteady(*chance[:2]), unsteady(*chance[2:])])
    assert report.text([unsteady(*chance)]).splitlines()[-1].startswith("More than 3")


def test_a_fixture_that_many_tests_share_fails_once() -> None:
    shared = [Failure(f"test_a.py::test_{n}", "no port") for n in range(9)]
    assert not report.has_failed([unsteady(*shared)])
    other = [Failure(f"test_a.py::test_{n}", f"reason {n}") for n in range(4)]
    assert report.has_failed([unsteady(*other)])
