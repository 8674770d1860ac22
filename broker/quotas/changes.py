"""The charge of a request that changes topics to its client's quota of changes (S-QTA-4)."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from broker.quotas.quotas import Quotas
from broker.request import RequestContext
from protocol.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from broker.quotas.mutation_quota import MutationCharge


def message_of(error: KafkaError) -> str | None:
    """The error message for a refused change; None for a spent quota, which has its code alone."""
    return None if error.code == ErrorCode.THROTTLING_QUOTA_EXCEEDED else str(error)


@contextmanager
def charged_changes(
    quotas: Quotas, ctx: RequestContext, *, strict_since: int = 0
) -> "Iterator[MutationCharge | None]":
    """Give the account that the changes within the block are charged to; None without a quota.

    `strict_since` is the first version of the API whose clients know that they may be refused for
    it. When the block ends, the client owes for the changes.
    """
    charging = quotas.charging
    charge = None if charging is None else charging.charge_changes(ctx, strict_since=strict_since)
    try:
        yield charge
    finally:
        if charging is not None:
            charging.owe_changes(ctx, charge)
