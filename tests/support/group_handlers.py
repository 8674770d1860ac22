"""The handlers of the group APIs over a coordinator on virtual time, called through the wire."""

from typing import Any

from broker.api.delete_groups import DeleteGroupsHandler
from broker.api.describe_groups import DescribeGroupsHandler
from broker.api.find_coordinator import FindCoordinatorHandler
from broker.api.heartbeat import HeartbeatHandler
from broker.api.join_group import JoinGroupHandler
from broker.api.leave_group import LeaveGroupHandler
from broker.api.list_groups import ListGroupsHandler
from broker.api.offset_commit import OffsetCommitHandler
from broker.api.offset_delete import OffsetDeleteHandler
from broker.api.offset_fetch import OffsetFetchHandler
from broker.api.sync_group import SyncGroupHandler
from broker.cluster.image import BrokerImage, MetadataImage, PartitionImage, TopicImage
from broker.registry import APIS
from broker.request import RequestContext
from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.registry import request_codec, spec
from storage.waits import PAUSE, Until, Work
from tests.support.api_calls import answer_of, context, over_the_wire
from tests.support.begun import begin
from tests.support.group_harness import GroupHarness
from tests.support.transaction_harness import TransactionHarness

TOPIC_ID = bytes(range(16))
OTHER_ID = bytes(range(16, 32))


def topic_image(name: str, topic_id: bytes, partitions: int) -> TopicImage:
    return TopicImage(
        name=name,
        topic_id=topic_id,
        partitions={
            index: PartitionImage(leader=1, leader_epoch=0, replicas=(1,), isr=(1,))
            for index in range(partitions)
        },
    )


class TopicMaker:
    """Makes the offsets topic, or refuses to."""

    def __init__(self, image: MetadataImage) -> None:
        self.image = image
        self.made: list[str] = []
        self.refusal: KafkaError | None = None

    async def ensure_topic(self, name: str) -> TopicImage:
        await PAUSE
        if self.refusal is not None:
            raise self.refusal
        self.made.append(name)
        topic = topic_image(name, OTHER_ID, 50)
        self.image.set_topic(topic)
        return topic


class Later:
    """A reply that may come later."""

    def __init__(self, ctx: RequestContext, key: ApiKey, version: int, work: Work[Any]) -> None:
        self._ctx, self._key, self._version, self._begun = ctx, key, version, begin(work)

    @property
    def done(self) -> bool:
        return self._begun.done

    def leave(self) -> None:
        """The client goes away."""
        self._begun.leave()

    @property
    def large(self) -> bool:
        """Whether the reply is encoded in turns."""
        return self._ctx.large

    @property
    def parked(self) -> bool:
        """Whether it waits on behalf of its client, and its bytes may be given back."""
        wait = self._begun.waits_for
        return isinstance(wait, Until) and wait.parked and self._ctx.released

    @property
    def response(self) -> Any:
        return over_the_wire(self._key, self._version, self._begun.reply)


class GroupApi(GroupHarness):
    """A broker's group APIs, with topics "t" (3 partitions) and "u" (1)."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.image = MetadataImage()
        self.image.set_broker(BrokerImage(broker_id=1, endpoints=()))
        self.image.set_topic(topic_image("t", TOPIC_ID, 3))
        self.image.set_topic(topic_image("u", bytes(15) + b"u", 1))
        self.maker = TopicMaker(self.image)
        groups, image = self.coordinator, self.image
        self.handlers: dict[ApiKey, Any] = {
            ApiKey.FIND_COORDINATOR: FindCoordinatorHandler(
                groups, TransactionHarness().coordinator, image, self.maker
            ),
            ApiKey.JOIN_GROUP: JoinGroupHandler(groups),
            ApiKey.SYNC_GROUP: SyncGroupHandler(groups),
            ApiKey.HEARTBEAT: HeartbeatHandler(groups),
            ApiKey.LEAVE_GROUP: LeaveGroupHandler(groups),
            ApiKey.OFFSET_COMMIT: OffsetCommitHandler(groups, image),
            ApiKey.OFFSET_FETCH: OffsetFetchHandler(groups, image),
            ApiKey.OFFSET_DELETE: OffsetDeleteHandler(groups, image),
            ApiKey.DESCRIBE_GROUPS: DescribeGroupsHandler(groups),
            ApiKey.LIST_GROUPS: ListGroupsHandler(groups),
            ApiKey.DELETE_GROUPS: DeleteGroupsHandler(groups),
        }

    def send(self, key: ApiKey, version: int, request: Any, *, large: bool = False) -> Later:
        """Send a request, then overwrite its buffer, as a connection does.

        `large`: whether it has more elements than are handled in one go.
        """
        codec = request_codec(key, version)
        frame = bytearray(codec.build(request))
        parsed, _ = codec.parse_at(frame, memoryview(frame), 0, len(frame))
        ctx = context(key, version)
        ctx.large = large
        later = Later(ctx, key, version, answer_of(self.handlers[key], ctx, parsed))
        frame[:] = b"\xee" * len(frame)
        self.check()
        return later

    def call(self, key: ApiKey, version: int, request: Any) -> Any:
        """Return the response to a request that is answered at once."""
        return self.send(key, version, request).response

    def refuse(self, key: ApiKey, version: int, request: Any, code: ErrorCode) -> Any:
        """Return the request channel's response for a handler that failed."""
        codec = request_codec(key, version)
        parsed = codec.parse(codec.build(request))
        response = self.handlers[key].error_response(context(key, version), parsed, code)
        return over_the_wire(key, version, response)


def versions(key: ApiKey) -> range:
    """Return all versions that the handler serves."""
    low, high = APIS[key].versions
    declared = spec(key)
    assert (low, high) == (declared.min_version, declared.max_version)
    return range(low, high + 1)
