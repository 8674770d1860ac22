"""A member that has just started shows clients its image when the controller has sent it one.

Before that the member knows no topic, and "unknown" would be wrong, because librdkafka fails the
records for a topic that a broker calls unknown. Kafka 3.9 does answer so, in the moment between its
registration and the controller's news.
"""

from typing import Any

from broker.membership.metadata_updates import MetadataUpdates
from broker.request import Handler, RequestContext, reply_of


class AfterFirstNews:
    """A handler that is called when the image is known."""

    def __init__(self, handler: Handler, updates: MetadataUpdates) -> None:
        self.handler = handler
        self.error_response = handler.error_response
        self._updates = updates

    async def __call__(self, ctx: RequestContext, request: Any) -> Any:
        """The handler's reply."""
        await self._updates.first_news()
        return await reply_of(self.handler(ctx, request))
