"""The two coordinators over logs in memory, in virtual time."""

import pytest

from tests.support.group_harness import GroupHarness
from tests.support.transaction_harness import TransactionHarness


@pytest.fixture
def groups() -> GroupHarness:
    """A group coordinator."""
    return GroupHarness()


@pytest.fixture
def broker() -> TransactionHarness:
    """A transaction coordinator."""
    return TransactionHarness()
