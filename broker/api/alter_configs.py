"""AlterConfigs (key 33): replace all configs of a topic or a broker.

Behaviour (S-CFG-4)
* A config that the request does not name goes back to its default (IncrementalAlterConfigs leaves
  it alone; this API is for clients that do not know that one).
* It alters topics, this broker, and (with an empty name) all brokers. Loggers, client metrics and
  groups: INVALID_REQUEST with the reason.
* Resources succeed and fail one by one; one that is named twice is an INVALID_REQUEST.
* Who may not alter the configs of a topic, or those of the cluster for everything else, gets
  TOPIC_AUTHORIZATION_FAILED or CLUSTER_AUTHORIZATION_FAILED, once the request is well formed.
* `validate_only` checks everything and changes nothing.
"""

from typing import Final

from broker.api_facts import Api
from broker.request import RequestContext
from broker.resource_configs import resources
from broker.resource_configs.alteration import (
    Altered,
    ConfigOwners,
    alter_each,
    refuse_each,
    response_of,
)
from broker.resource_configs.changes import check_changes, replacement
from broker.resource_configs.resources import ConfigResourceType, unsupported
from broker.security.access import Operation
from broker.security.permissions import Permissions
from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.alter_configs import (
    AlterConfigsRequest,
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


class AlterConfigsHandler:
    """Replaces all configs of a topic or a broker by those of the request."""

    def __init__(self, owners: ConfigOwners, *, allowed: Permissions | None = None) -> None:
        self._allowed = allowed
        self._owners = owners

    async def __call__(
        self, ctx: RequestContext, request: AlterConfigsRequest
    ) -> AlterConfigsResponse:
        """The response, when all changes are stored."""

        async def alter(resource: AlterConfigsResource) -> None:
            check_changes(resource.configs)
            which = resource.resource_type, resource.resource_name
            if resource.resource_type == ConfigResourceType.BROKER_LOGGER:
                raise unsupported(resource.resource_type)
            resources.check_allowed(self._allowed, ctx, Operation.ALTER_CONFIGS, *which)
            await self._owners.alter(
                *which,
                replacement(resource.configs),
                validate_only=request.validate_only,
            )

        return _response(await alter_each(request.resources, alter))

    def error_response(
        self, ctx: RequestContext, request: AlterConfigsRequest, code: ErrorCode
    ) -> AlterConfigsResponse:
        """The code for every resource."""
        return _response(refuse_each(request.resources, code))


def _response(results: list[Altered]) -> AlterConfigsResponse:
    return response_of(results, AlterConfigsResponse, AlterConfigsResourceResponse)
