"""The topic that a part of a request names, by name or by id, if the client may know of it."""

from broker.cluster.image import Found, MetadataImage
from broker.request import RequestContext
from broker.security.permissions import Permissions
from protocol.acls.vocabulary import Operation, ResourceType
from protocol.errors import ErrorCode


class NamedTopics:
    """Finds topics for clients that must be allowed an operation on each of them.

    A denied name is TOPIC_AUTHORIZATION_FAILED whether it exists or not. Ids are no secret: an
    unknown one is UNKNOWN_TOPIC_ID, as there is no name to ask about.
    """

    __slots__ = ("_allowed", "_image", "_operation")

    def __init__(
        self, image: MetadataImage, allowed: Permissions | None, operation: Operation
    ) -> None:
        self._image = image
        self._allowed = allowed
        self._operation = operation

    def by_name(self, ctx: RequestContext, name: str) -> Found:
        """The topic of this name."""
        if not self._may(ctx, name):
            return None, ErrorCode.TOPIC_AUTHORIZATION_FAILED
        return self._image.topic(name), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    def by_id(self, ctx: RequestContext, topic_id: bytes) -> Found:
        """The topic with this id."""
        topic = self._image.topic_by_id(topic_id)
        if topic is None:
            return None, ErrorCode.UNKNOWN_TOPIC_ID
        if not self._may(ctx, topic.name):
            return None, ErrorCode.TOPIC_AUTHORIZATION_FAILED
        return topic, ErrorCode.NONE

    def _may(self, ctx: RequestContext, name: str) -> bool:
        allowed = self._allowed
        return allowed is None or allowed(ctx, self._operation, ResourceType.TOPIC, name)
