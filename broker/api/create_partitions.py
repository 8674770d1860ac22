"""CreatePartitions (key 37): let topics grow.

Behaviour (S-META-2)
* Exactly one result per topic; a topic that is named twice is an INVALID_REQUEST.
* `count` is the new total; it must exceed the present one (INVALID_PARTITIONS).
* More than 10,000 new partitions in all: POLICY_VIOLATION for every topic, before any is planned.
* `validate_only` checks everything and changes nothing.
* The new partitions can be written to when the response goes out, so the timeout never applies.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Final, Protocol

from broker import many
from broker.api_facts import Api
from broker.cluster.image import MetadataImage
from broker.cluster.topic_plan import check_partitions_added
from broker.request import RequestContext
from broker.security.access import Operation, topics
from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopicResult,
)
from storage.waits import PAUSE

API: Final = Api(
    key=ApiKey.CREATE_PARTITIONS,
    versions=(0, 3),
    most_elements=50_000,
    # ControllerApis.createPartitions
    accesses=(topics(Operation.ALTER),),
    make=lambda s: CreatePartitionsHandler(s.controller, s.image),
)


class PartitionCreator(Protocol):
    """The part of `broker.cluster.controller.Controller` that is used here."""

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
    """Has the controller add partitions to topics."""

    def __init__(self, controller: PartitionCreator, image: MetadataImage) -> None:
        self._controller = controller
        self._image = image

    async def __call__(
        self, ctx: RequestContext, request: CreatePartitionsRequest
    ) -> CreatePartitionsResponse:
        """The response, when all partitions are made."""
        named: Counter[str] = Counter()
        added = 0
        for topic in request.topics:
            named[topic.name] += 1
            known = self._image.topic(topic.name)
            if known is not None:
                added += max(topic.count - len(known.partitions), 0)
            await PAUSE
        try:
            check_partitions_added((added,))
        except KafkaError as error:
            return _all(list(named), error.code, str(error))
        results = []
        for topic in request.topics:
            if topic.name not in named:
                continue
            result = _result(topic.name, ErrorCode.NONE, None)
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
                result = _result(topic.name, error.code, str(error))
            results.append(result)
            await PAUSE
        return CreatePartitionsResponse(results=results)

    def error_response(
        self, ctx: RequestContext, request: CreatePartitionsRequest, code: ErrorCode
    ) -> CreatePartitionsResponse:
        """The code for every topic."""
        results = [
            CreatePartitionsTopicResult(name=topic.name, error_code=code, error_message=code.text)
            for topic in request.topics
        ]
        return CreatePartitionsResponse(results=results)


def _result(name: str, code: ErrorCode, message: str | None) -> CreatePartitionsTopicResult:
    return CreatePartitionsTopicResult(name=name, error_code=code, error_message=message)


def _all(names: list[str], code: ErrorCode, message: str) -> CreatePartitionsResponse:
    return CreatePartitionsResponse(
        results=many.results(names, lambda name: _result(name, code, message))
    )
