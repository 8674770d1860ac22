"""Fixtures for the tests of handlers: a controller, the handlers of groups, a topic."""

import pytest

from storage.waits import at_once
from tests.support.cluster_fakes import Cluster, start_cluster
from tests.support.fetch_bench import Asked
from tests.support.group_handlers import GroupApi


@pytest.fixture
def cluster() -> Cluster:
    """A stand-alone controller with Kafka's defaults."""
    return at_once(start_cluster())


@pytest.fixture
def api() -> GroupApi:
    """The handlers of groups."""
    return GroupApi()


@pytest.fixture
def asked() -> Asked:
    """A broker with a topic of one partition, and its Fetch handler."""
    return Asked()
