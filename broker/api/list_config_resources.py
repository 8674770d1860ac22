"""ListConfigResources (key 74): the resources that may have configs of their own (KIP-1142).

Behaviour
* The answer has the resources of each type in the request; without types, those of all. Topics are
  those that exist, brokers and their loggers those that live. There are no client metrics (KIP-714)
  and no configs of groups (KIP-848), so none are listed.
* UNSUPPORTED_VERSION for a type that has no configs.

Version notes
* v0: ListClientMetricsResources, which asks for client metrics alone.
"""

from typing import Final

from broker import many
from broker.api_facts import Api, CodeAlone
from broker.cluster.image import MetadataImage
from broker.request import RequestContext
from broker.resource_configs.resources import ConfigResourceType
from broker.security.access import Access, Operation, ResourceType
from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.list_config_resources import (
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
    ListedConfigResource,
)

API: Final = Api(
    key=ApiKey.LIST_CONFIG_RESOURCES,
    versions=(0, 1),
    most_elements=1_000,
    # KafkaApis.handleListConfigResources
    accesses=(Access(ResourceType.CLUSTER, Operation.DESCRIBE_CONFIGS),),
    make=lambda s: ListConfigResourcesHandler(s.image),
)

_FIRST_VERSION_WITH_TYPES: Final = 1
_LISTED: Final = frozenset(ConfigResourceType) - {ConfigResourceType.UNKNOWN}


class ListConfigResourcesHandler(CodeAlone):
    """Lists topics and brokers of the metadata image."""

    response = ListConfigResourcesResponse

    def __init__(self, image: MetadataImage) -> None:
        self._image = image

    def __call__(
        self, ctx: RequestContext, request: ListConfigResourcesRequest
    ) -> ListConfigResourcesResponse:
        """The response, at once."""
        if ctx.api_version < _FIRST_VERSION_WITH_TYPES:
            return ListConfigResourcesResponse()
        types: frozenset[int] = frozenset(request.resource_types) or _LISTED
        if not types <= _LISTED:
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)
        found: list[tuple[str, ConfigResourceType]] = []
        for kind in (ConfigResourceType.BROKER_LOGGER, ConfigResourceType.BROKER):
            if kind in types:
                found += [(str(broker.broker_id), kind) for broker in self._image.brokers()]
        if ConfigResourceType.TOPIC in types:
            found += [(topic.name, ConfigResourceType.TOPIC) for topic in self._image.topics()]
        ctx.large |= len(found) > many.MANY
        return ListConfigResourcesResponse(config_resources=many.results(found, _listed))


def _listed(found: tuple[str, ConfigResourceType]) -> ListedConfigResource:
    name, kind = found
    return ListedConfigResource(resource_name=name, resource_type=kind)
