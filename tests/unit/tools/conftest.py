"""Fixtures for the tests of the command line."""

import pytest

from tests.support.command_line import Command, Printed
from tools.__main__ import main


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str]) -> Command:
    """Runs `pykafkalog WORDS` in this process; it ends with `code`. Returns what it printed."""

    def run(*words: object, code: int = 0) -> Printed:
        capsys.readouterr()
        assert main([str(word) for word in words]) == code
        return Printed(*capsys.readouterr())

    return run
