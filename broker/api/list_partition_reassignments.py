"""ListPartitionReassignments (key 46): which partitions are on their way to other brokers.

Versions: 0.

Behaviour: none ever is, with one broker (KIP-455). Moves between its log directories are not
reassignments; DescribeLogDirs shows them.
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
    """Tells that no partition is on its way: on one broker none ever is."""

    def __call__(
        self, ctx: RequestContext, request: ListPartitionReassignmentsRequest
    ) -> ListPartitionReassignmentsResponse:
        """The response, at once."""
        return ListPartitionReassignmentsResponse(topics=[])

    def error_response(
        self, ctx: RequestContext, request: ListPartitionReassignmentsRequest, code: ErrorCode
    ) -> ListPartitionReassignmentsResponse:
        """The code."""
        return ListPartitionReassignmentsResponse(error_code=code, error_message=code.text)
