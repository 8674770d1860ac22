"""ListPartitionReassignments (key 46): which partitions are being moved to other brokers.

Versions: 0.

Behaviour (KIP-455): the list is always empty, as there is one broker. Moves between its log
directories are not reassignments; DescribeLogDirs shows them.
"""

from typing import Final

from broker.request import RequestContext
from protocol.errors import ErrorCode
from protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)

VERSIONS: Final = (0, 0)


class ListPartitionReassignmentsHandler:
    """Answers with an empty list: with one broker no partition is ever reassigned."""

    async def __call__(
        self, ctx: RequestContext, request: ListPartitionReassignmentsRequest
    ) -> ListPartitionReassignmentsResponse:
        """The response, at once."""
        return ListPartitionReassignmentsResponse(topics=[])

    def error_response(
        self, ctx: RequestContext, request: ListPartitionReassignmentsRequest, code: ErrorCode
    ) -> ListPartitionReassignmentsResponse:
        """The code."""
        return ListPartitionReassignmentsResponse(error_code=code, error_message=code.text)
