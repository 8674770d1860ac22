"""Fixtures of the storage's unit tests."""

import pytest

from tests.support.faulty_filesystem import FaultyFileSystem


@pytest.fixture
def fs() -> FaultyFileSystem:
    """A disk in memory with an empty directory, `/d`."""
    fs = FaultyFileSystem()
    fs.make_dirs("/d")
    return fs
