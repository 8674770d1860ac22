"""AlterConfigs (key 33): replace all configs of a topic or a broker.

Behaviour (S-CFG-4)
* A config that the request does not name goes back to its default (IncrementalAlterConfigs leaves
  it alone; this API is for clients that do not know that one).
* It alters topics, this broker, and (with an empty name) all brokers. Loggers, client metrics and
  groups: INVALID_REQUEST with the reason.
* Resources succeed and fail one by one; one that is named twice is an INVALID_REQUEST.
* A client that may not alter the configs of a topic, or those of the cluster for everything else,
  gets TOPIC_AUTHORIZATION_FAILED or CLUSTER_AUTHORIZATION_FAILED, once the request is well formed.
* `validate_only` checks everything and changes nothing.
"""

from typing import Final

from broker.api_facts import Api
from broker.request import RequestContext
from broker.resource_configs import resources
from broker.resource_configs.alteration import AlteringHandler, ConfigOwners
from broker.resource_configs.changes import check_changes, replacement
from broker.resource_configs.resources import ConfigResourceType, unsupported
from broker.security.access import Operation
from protocol.api_keys import ApiKey
from protocol.messages.alter_configs import (
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)

API: Final = Api(
    key=ApiKey.ALTER_CONFIGS,
    versions=(0, 2),
    most_elements=50_000,
    # ControllerApis.authorizeAlterResource
    asks=resources.questions(Operation.ALTER_CONFIGS),
    make=lambda s: AlterConfigsHandler(
        ConfigOwners(s.controller, s.broker_configs), allowed=s.allowed
    ),
)


class AlterConfigsHandler(AlteringHandler):
    """Replaces all configs of a topic or a broker by those of the request."""

    response = AlterConfigsResponse
    result = AlterConfigsResourceResponse

    async def _alter(
        self, ctx: RequestContext, resource: AlterConfigsResource, *, validate_only: bool
    ) -> None:
        check_changes(resource.configs)
        which = resource.resource_type, resource.resource_name
        if resource.resource_type == ConfigResourceType.BROKER_LOGGER:
            raise unsupported(resource.resource_type)
        resources.check_allowed(self._allowed, ctx, Operation.ALTER_CONFIGS, *which)
        change = replacement(resource.configs)
        await self._owners.alter(*which, change, validate_only=validate_only)
