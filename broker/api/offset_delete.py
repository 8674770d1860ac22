"""OffsetDelete (key 47): delete a group's offsets of topics that it no longer reads.

Versions: 0 (never flexible).

Behaviour (S-GRP-6, KIP-496)
* GROUP_ID_NOT_FOUND if the group does not exist; NON_EMPTY_GROUP if it has members whose
  subscriptions the broker cannot read, because they are not consumers.
* Per partition: UNKNOWN_TOPIC_OR_PARTITION, GROUP_SUBSCRIBED_TO_TOPIC; NONE also if there was no
  offset to delete.
* The answer goes out when the tombstones are durable.
"""

from typing import Final

from broker.api.answers import AwaitedAnswer, ParkedAnswer
from broker.cluster.image import MetadataImage
from broker.coordinator.group.coordinator import GroupCoordinator
from broker.request import Pending, RequestContext, Work
from broker.world.turns import wait_for_turn
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)

VERSIONS: Final = (0, 0)

TOMBSTONES_PER_TURN: Final = 256

_Reply = OffsetDeleteResponse | Pending


class OffsetDeleteHandler:
    """Has the group coordinator delete offsets of topics that no member reads."""

    def __init__(self, groups: GroupCoordinator, image: MetadataImage) -> None:
        self._groups = groups
        self._image = image

    def __call__(self, ctx: RequestContext, request: OffsetDeleteRequest) -> _Reply | Work[_Reply]:
        """The response, or a `Pending` if followers must replicate the tombstones first."""
        wanted = list(
            dict.fromkeys(
                (topic.name, one.partition_index)
                for topic in request.topics
                for one in topic.partitions
                if self._exists(topic.name, one.partition_index)
            )
        )
        if ctx.large:
            return self._in_turns(ctx, request, wanted)
        answer = ParkedAnswer(lambda outcome: _response(request, *outcome))
        try:
            self._groups.delete_offsets(
                request.group_id, wanted, lambda code, results: answer((code, results))
            )
        except KafkaError as error:
            return self.error_response(ctx, request, error.code)
        return answer.handed_over()

    async def _in_turns(
        self, ctx: RequestContext, request: OffsetDeleteRequest, wanted: list[tuple[str, int]]
    ) -> OffsetDeleteResponse:
        """Write very many tombstones as several batches, one after the other."""
        results: dict[tuple[str, int], ErrorCode] = {}
        start = 0
        while start < len(wanted) or not start:  # once even for none: the group may be missing
            some = wanted[start : start + TOMBSTONES_PER_TURN]
            answer = AwaitedAnswer()
            try:
                self._groups.delete_offsets(
                    request.group_id, some, lambda *outcome, told=answer: told(outcome)
                )
                code, found = await answer.wait()
            except KafkaError as error:
                return self.error_response(ctx, request, error.code)
            if code is not ErrorCode.NONE:
                return self.error_response(ctx, request, code)
            results.update(found)
            start += TOMBSTONES_PER_TURN
            await wait_for_turn()
        return _response(request, ErrorCode.NONE, results)

    def _exists(self, name: str, partition: int) -> bool:
        topic = self._image.topic(name)
        return topic is not None and partition in topic.partitions

    def error_response(
        self, ctx: RequestContext, request: OffsetDeleteRequest, code: ErrorCode
    ) -> OffsetDeleteResponse:
        """`code` for the whole request."""
        return OffsetDeleteResponse(error_code=code)


def _response(
    request: OffsetDeleteRequest, code: ErrorCode, results: dict[tuple[str, int], ErrorCode]
) -> OffsetDeleteResponse:
    if code is not ErrorCode.NONE:
        return OffsetDeleteResponse(error_code=code)
    return OffsetDeleteResponse(
        topics=[
            OffsetDeleteResponseTopic(
                name=topic.name,
                partitions=[
                    OffsetDeleteResponsePartition(
                        partition_index=one.partition_index,
                        error_code=results.get(
                            (topic.name, one.partition_index),
                            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                        ),
                    )
                    for one in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )
