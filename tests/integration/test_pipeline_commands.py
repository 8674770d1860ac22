"""`pykafkalog pipeline` as a user calls it, and killed with -9 while it works."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.command_line import pykafkalog
from tests.support.installation import CHECKOUT, ROOT, under_test


def refusal(*words: str) -> str:
    done = pykafkalog("pipeline", *words, installation=CHECKOUT)
    assert done.returncode == 1, done.stdout
    (line,) = done.stderr.splitlines()
    return line


def test_mistakes_end_a_pipeline_command_before_spark_starts(
    bootstrap: str, topic: str, tmp_path: Path
) -> None:
    to = ("--to", str(tmp_path / "table"), "--available-now")
    assert f"there is no topic {topic}" in refusal("archive", topic, *to, "-b", bootstrap)
    assert "cannot connect to 127.0.0.1:1" in refusal("archive", topic, *to, "-b", "127.0.0.1:1")
    assert "there is no" in refusal("restore", str(tmp_path / "none"), "-b", bootstrap)
    assert "is no table of an archive" in refusal("compact", str(tmp_path / "none"))


def test_a_pipeline_command_without_the_extra_shows_how_to_install_it(tmp_path: Path) -> None:
    used = under_test()
    if used is CHECKOUT:
        pytest.skip("the checkout has the extra: scripts/test tests a wheel without it")
    done = pykafkalog("pipeline", "archive", "t", "--to", str(tmp_path), "--available-now")
    assert done.returncode == 1
    assert "pip install 'pykafkalog[spark]'" in done.stderr


@pytest.mark.parametrize(
    "words", [("--rounds", "1"), ("--rounds", "1", "--restore", "--records", "20000")]
)
def test_nothing_is_lost_or_there_twice_after_kills(words: tuple[str, ...], tmp_path: Path) -> None:
    done = subprocess.run(
        [
            *(sys.executable, str(ROOT / "scripts/pipeline_kills.py"), *words),
            *("--seed", "1", "--longest", "2", "--directory", str(tmp_path)),
        ],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert "All of it holds" in done.stdout
