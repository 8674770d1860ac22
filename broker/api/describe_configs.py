"""DescribeConfigs (key 32).

Behaviour (S-CFG-2, S-CFG-3)
* The answer has every config of a topic or of this broker, with its source, its type, whether it
  may be changed, and whether it is secret (then without value). `configuration_keys` selects some;
  null or an empty list means all.
* A client that may not describe the configs of a topic or a group, or those of the cluster for
  everything else, gets the code of the denial and nothing else.
* An unknown topic is UNKNOWN_TOPIC_OR_PARTITION, a name that no topic can have
  INVALID_TOPIC_EXCEPTION. Another broker's id is an INVALID_REQUEST: the client must ask that one.
* An empty broker name asks for the cluster's dynamic configs.
* For loggers the answer has their levels (KIP-412).
* A resource that the request names again with the same keys is answered once.
* Client metrics and groups have no configs here: INVALID_REQUEST.

Version notes
* v0: only whether a value is the default. v1+: source, and synonyms on request.
* v3+: types, and documentation on request.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Final, NamedTuple

from broker import many
from broker.api_facts import Api
from broker.cluster.dynamic_broker_config import DynamicBrokerConfig
from broker.cluster.image import MetadataImage
from broker.cluster.topic_names import invalid_name_reason
from broker.request import RequestContext
from broker.resource_configs import log_levels, resources
from broker.resource_configs.description import (
    ConfigEntry,
    broker_entries,
    cluster_entries,
    logger_entries,
    topic_entries,
)
from broker.resource_configs.resources import (
    ConfigResourceType,
    check_allowed,
    check_broker_name,
    unsupported,
)
from broker.security.access import Operation
from broker.security.permissions import Permissions
from config.definition import ConfigError
from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)
from protocol.schema.lazy import Elements, Lazy
from storage.waits import PAUSE

API: Final = Api(
    key=ApiKey.DESCRIBE_CONFIGS,
    versions=(0, 4),
    ends_with_client=True,
    # ConfigHelper.handleDescribeConfigsRequest
    asks=resources.questions(Operation.DESCRIBE_CONFIGS),
    make=lambda s: DescribeConfigsHandler(s.image, s.broker_configs, allowed=s.allowed),
)

FEW: Final = 4
"""Resources that are described in one go, one broker or its loggers among them: these have three
hundred configs, a topic has some thirty."""


class _Known(NamedTuple):
    """Entries of one request's resources that may be answered again."""

    others: dict[tuple[int, bool], list[ConfigEntry]]
    """Those of brokers and loggers, which cost most, for a request that names them again with other
    keys."""
    topic: Callable[[tuple[tuple[str, str], ...]], list[ConfigEntry]]
    """Those of a topic that sets these configs: the last are kept, as mostly all topics set the
    same."""


class DescribeConfigsHandler:
    """Describes the configs of topics, brokers and loggers: values, sources, documentation."""

    def __init__(
        self,
        image: MetadataImage,
        configs: DynamicBrokerConfig,
        *,
        allowed: Permissions | None = None,
    ) -> None:
        self._allowed = allowed
        self._image = image
        self._configs = configs

    async def __call__(
        self, ctx: RequestContext, request: DescribeConfigsRequest
    ) -> DescribeConfigsResponse:
        """The response; resources of many configs are described one at a time, while it is
        encoded."""
        different: dict[tuple[int, str, tuple[str, ...]], DescribeConfigsResource] = {}
        for one in request.resources:
            keys = tuple(one.configuration_keys or ())
            different[one.resource_type, one.resource_name, keys] = one
            await PAUSE
        known = _Known(
            {}, lru_cache(maxsize=1)(lambda own: topic_entries(dict(own), self._configs))
        )
        resources = list(different.values())
        response = DescribeConfigsResponse()

        def described(one: DescribeConfigsResource) -> DescribeConfigsResult:
            return self._resource(ctx, one, request, known)

        others = sum(one.resource_type != ConfigResourceType.TOPIC for one in resources)
        if len(resources) <= FEW and others <= 1:
            response.results = list(map(described, resources))
        else:
            ctx.large = True
            response.results = Lazy(resources, described)
        return response

    def _resource(
        self,
        ctx: RequestContext,
        resource: DescribeConfigsResource,
        request: DescribeConfigsRequest,
        known: "_Known",
    ) -> DescribeConfigsResult:
        """Describe one resource."""
        which = (resource.resource_type, resource.resource_name)
        try:
            check_allowed(self._allowed, ctx, Operation.DESCRIBE_CONFIGS, *which)
        except KafkaError as error:
            return _result(resource, error.code, str(error), [])
        kind = (resource.resource_type, bool(resource.resource_name))
        entries = known.others.get(kind) if self._is_this_broker(resource) else None
        if entries is None:
            try:
                entries = self._entries(*which, known)
            except KafkaError as error:
                return _result(resource, error.code, str(error), [])
            if resource.resource_type != ConfigResourceType.TOPIC:
                known.others[kind] = entries
        wanted = set(resource.configuration_keys or ())
        chosen = [entry for entry in entries if not wanted or entry.name in wanted]
        configs = Lazy(chosen, lambda entry: _describe(entry, request))
        return _result(resource, ErrorCode.NONE, None, configs)

    def _is_this_broker(self, resource: DescribeConfigsResource) -> bool:
        """Whether the resource's name is this broker's id, however spelled ("01"), or empty."""
        if resource.resource_type == ConfigResourceType.TOPIC:
            return False
        try:
            return not resource.resource_name or (
                int(resource.resource_name) == self._configs.current.broker_id
            )
        except ValueError:
            return False

    def _entries(self, resource_type: int, name: str, known: "_Known") -> list[ConfigEntry]:
        if resource_type == ConfigResourceType.TOPIC:
            reason = invalid_name_reason(name)
            if reason is not None:
                raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, reason)
            topic = self._image.topic(name)
            if topic is None:
                raise KafkaError(
                    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{name}' does not exist."
                )
            try:
                return known.topic(tuple(topic.config.items()))
            except ConfigError as error:
                # Valid with the server.properties it was stored under, but not with this one.
                raise KafkaError(ErrorCode.INVALID_CONFIG, error.message) from error
        if resource_type == ConfigResourceType.BROKER:
            if not name:
                return cluster_entries(self._configs)
            check_broker_name(name, self._configs.current.broker_id)
            return broker_entries(self._configs)
        if resource_type == ConfigResourceType.BROKER_LOGGER:
            if not name:
                raise KafkaError(ErrorCode.INVALID_REQUEST, "Broker id must not be empty")
            check_broker_name(name, self._configs.current.broker_id, may_be_empty=False)
            return logger_entries(log_levels.levels())
        raise unsupported(resource_type)

    def error_response(
        self, ctx: RequestContext, request: DescribeConfigsRequest, code: ErrorCode
    ) -> DescribeConfigsResponse:
        """The code for every resource."""
        return DescribeConfigsResponse(
            results=many.results(
                request.resources, lambda resource: _result(resource, code, code.text, [])
            )
        )


def _result(
    resource: DescribeConfigsResource,
    code: ErrorCode,
    message: str | None,
    configs: Elements[DescribeConfigsResourceResult],
) -> DescribeConfigsResult:
    return DescribeConfigsResult(
        error_code=code,
        error_message=message,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
        configs=configs,
    )


def _describe(entry: ConfigEntry, request: DescribeConfigsRequest) -> DescribeConfigsResourceResult:
    result = DescribeConfigsResourceResult(
        name=entry.name,
        value=entry.value,
        read_only=entry.read_only,
        is_default=entry.is_default,
        config_source=entry.source,
        is_sensitive=entry.sensitive,
        synonyms=[],
        config_type=0 if entry.type is None else entry.type.wire_id,
        documentation=None,
    )
    if request.include_synonyms:
        result.synonyms = [
            DescribeConfigsSynonym(name=synonym.name, value=synonym.value, source=synonym.source)
            for synonym in entry.synonyms
        ]
    if request.include_documentation:
        result.documentation = entry.documentation
    return result
