"""Fixtures for the tests of metadata in the tree."""

import pytest

from storage.waits import at_once
from tests.support.cluster_fakes import Cluster, start_cluster


@pytest.fixture
def cluster() -> Cluster:
    """A controller that leads alone, over a store in memory."""
    return at_once(start_cluster())
