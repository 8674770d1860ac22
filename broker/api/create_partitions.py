"""CreatePartitions (key 37): let topics grow.

Behaviour (S-META-2)
* Exactly one result per topic; a topic that is named twice is an INVALID_REQUEST.
* TOPIC_AUTHORIZATION_FAILED for a topic that the client may not alter.
* `count` is the new total; it must exceed the present one (INVALID_PARTITIONS).
* More than 10,000 new partitions in all: POLICY_VIOLATION for every topic, before any is planned.
* `validate_only` checks everything and changes nothing.
* Each new partition counts for the client's quota of changes (S-QTA-4), also with `validate_only`.
* The new partitions can be written to when the response goes out. Only in a cluster the timeout may
  come first (REQUEST_TIMED_OUT; they are being made all the same).

Version notes
* v3+: THROTTLING_QUOTA_EXCEEDED while the quota of changes is spent; older clients are throttled,
  and served.
"""

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from broker import many
from broker.api_facts import Api
from broker.cluster.image import MetadataImage
from broker.cluster.topic_plan import check_partitions_added
from broker.quotas.changes import charged_changes, message_of
from broker.quotas.quotas import Quotas
from broker.request import RequestContext
from broker.security.access import Operation, Question, ResourceType
from broker.security.permissions import Permissions
from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopicResult,
)
from storage.waits import PAUSE

if TYPE_CHECKING:
    from broker.services import TopicChanger

API: Final = Api(
    key=ApiKey.CREATE_PARTITIONS,
    versions=(0, 3),
    most_elements=50_000,
    controller_only=True,
    # ControllerApis.createPartitions
    asks=(Question(ResourceType.TOPIC, Operation.ALTER),),
    make=lambda s: CreatePartitionsHandler(s.controller, s.image, s.quotas, allowed=s.allowed),
)

FIRST_STRICT_VERSION: Final = 3


class CreatePartitionsHandler:
    """Has the controller add partitions to topics."""

    def __init__(
        self,
        controller: "TopicChanger",
        image: MetadataImage,
        quotas: Quotas,
        *,
        allowed: Permissions | None = None,
    ) -> None:
        self._allowed = allowed
        self._controller = controller
        self._image = image
        self._quotas = quotas

    async def __call__(
        self, ctx: RequestContext, request: CreatePartitionsRequest
    ) -> CreatePartitionsResponse:
        """The response, when all partitions are made."""
        named: Counter[str] = Counter()
        for topic in request.topics:
            named[topic.name] += 1
            await PAUSE
        try:
            refused = await self._refused(ctx, request, named)
        except KafkaError as error:
            return _all(list(named), error.code, str(error))
        results = []
        with charged_changes(self._quotas, ctx, strict_since=FIRST_STRICT_VERSION) as charge:
            for topic in request.topics:
                if named.pop(topic.name, 0) == 0:
                    continue  # answered already
                result = _result(topic.name, ErrorCode.NONE, None)
                try:
                    if topic.name in refused:
                        raise refused[topic.name]
                    assignments = topic.assignments
                    await self._controller.create_partitions(
                        topic.name,
                        topic.count,
                        None if assignments is None else [tuple(a.broker_ids) for a in assignments],
                        validate_only=request.validate_only,
                        charge=charge,
                        timeout_ms=request.timeout_ms,
                    )
                except KafkaError as error:
                    result = _result(topic.name, error.code, message_of(error))
                results.append(result)
                await PAUSE
        return CreatePartitionsResponse(results=results)

    async def _refused(
        self, ctx: RequestContext, request: CreatePartitionsRequest, named: Mapping[str, int]
    ) -> dict[str, KafkaError]:
        """The topics that are refused before the controller gets the others.

        Raises KafkaError if the others together would grow by too many partitions.
        """
        allowed = self._allowed
        refused: dict[str, KafkaError] = {}
        added = 0
        for topic in request.topics:
            name = topic.name
            if named[name] > 1:
                refused[name] = KafkaError(ErrorCode.INVALID_REQUEST, "Duplicate topic in request.")
            elif allowed is not None and not allowed(
                ctx, Operation.ALTER, ResourceType.TOPIC, name
            ):
                refused[name] = KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
            else:
                known = self._image.topic(name)
                if known is not None:
                    added += max(topic.count - len(known.partitions), 0)
            await PAUSE
        check_partitions_added((added,))
        return refused

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
