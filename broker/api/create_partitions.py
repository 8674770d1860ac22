"""CreatePartitions (key 37): let topics grow.

Versions: 0-3.

Behaviour (S-META-2)
* Exactly one result per topic that was named; a topic that is named twice is an INVALID_REQUEST.
* `count` is the new total; it must be greater than what the topic has (INVALID_PARTITIONS).
* `validate_only` checks everything and changes nothing.
* The new partitions can be written to when the response goes out; the timeout never comes to bear.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Any, Final, Protocol

from broker.request import RequestContext
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.create_partitions import (
    CreatePartitionsResponse,
    CreatePartitionsTopicResult,
)

VERSIONS: Final = (0, 3)


class PartitionCreator(Protocol):
    """What is needed of `broker.cluster.controller.Controller`."""

    async def create_partitions(
        self,
        name: str,
        count: int,
        assignments: Sequence[tuple[int, ...]] | None = None,
        *,
        validate_only: bool = False,
    ) -> None:
        """Let the topic have `count` partitions. Raises KafkaError."""
        ...


class CreatePartitionsHandler:
    """See the module."""

    def __init__(self, controller: PartitionCreator) -> None:
        self._controller = controller

    async def __call__(self, ctx: RequestContext, request: Any) -> Any:
        """The response, when all partitions are made."""
        named = Counter(topic.name for topic in request.topics)
        results = []
        for topic in request.topics:
            if topic.name not in named:
                continue
            code, message = ErrorCode.NONE, None
            try:
                if named.pop(topic.name) > 1:
                    raise KafkaError(ErrorCode.INVALID_REQUEST, "Duplicate topic in request.")
                assignments = topic.assignments
                await self._controller.create_partitions(
                    topic.name,
                    topic.count,
                    None if assignments is None else [tuple(a.broker_ids) for a in assignments],
                    validate_only=request.validate_only,
                )
            except KafkaError as error:
                code, message = error.code, str(error)
            results.append(
                CreatePartitionsTopicResult(name=topic.name, error_code=code, error_message=message)
            )
        return CreatePartitionsResponse(results=results)

    def error_response(self, ctx: RequestContext, request: Any, code: ErrorCode) -> Any:
        """The code for every topic."""
        results = [
            CreatePartitionsTopicResult(name=topic.name, error_code=code, error_message=code.text)
            for topic in request.topics
        ]
        return CreatePartitionsResponse(results=results)
