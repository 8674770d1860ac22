"""DescribeConfigs (key 32).

Versions: 0-4.

Behaviour (S-CFG-2, S-CFG-3)
* Every config of a topic or of this broker, with source, type, whether it may be changed, and
  whether it is secret (then without value). Which of them: `configuration_keys`; null or an empty
  list means all.
* An unknown topic is UNKNOWN_TOPIC_OR_PARTITION, a name that cannot be a topic's
  INVALID_TOPIC_EXCEPTION. Another broker's id is an INVALID_REQUEST: the client must ask that one.
* The empty broker name stands for what was set for all brokers while they run.
* A broker's loggers: their levels (KIP-412).
* Client metrics and groups have no configs here: INVALID_REQUEST.

Version notes
* v0 says only whether a value is the default. v1+: source, and synonyms on request.
* v3+: types, and documentation on request.
"""

from typing import Any, Final

from broker import log_levels
from broker.api.config_description import (
    BrokerConfigs,
    ConfigEntry,
    broker_entries,
    cluster_entries,
    logger_entries,
    topic_entries,
)
from broker.api.config_resources import ResourceType, check_broker_name, unsupported
from broker.cluster.image import MetadataImage
from broker.cluster.topic_names import invalid_name_reason
from broker.request import RequestContext
from config.definition import ConfigError
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.describe_configs import (
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)

VERSIONS: Final = (0, 4)


class DescribeConfigsHandler:
    """See the module."""

    def __init__(self, image: MetadataImage, configs: BrokerConfigs) -> None:
        self._image = image
        self._configs = configs

    def __call__(self, ctx: RequestContext, request: Any) -> Any:
        """The response, at once."""
        return DescribeConfigsResponse(
            results=[self._resource(resource, request) for resource in request.resources]
        )

    def _resource(self, resource: Any, request: Any) -> Any:
        try:
            entries = self._entries(resource.resource_type, resource.resource_name)
        except KafkaError as error:
            return _result(resource, error.code, str(error), [])
        wanted = set(resource.configuration_keys or ())
        configs = [
            _describe(entry, request) for entry in entries if not wanted or entry.name in wanted
        ]
        return _result(resource, ErrorCode.NONE, None, configs)

    def _entries(self, resource_type: int, name: str) -> list[ConfigEntry]:
        if resource_type == ResourceType.TOPIC:
            reason = invalid_name_reason(name)
            if reason is not None:
                raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, reason)
            topic = self._image.topic(name)
            if topic is None:
                raise KafkaError(
                    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{name}' does not exist."
                )
            try:
                return topic_entries(topic.config, self._configs)
            except ConfigError as error:
                # Stored under another server.properties, and no longer valid with this one.
                raise KafkaError(ErrorCode.INVALID_CONFIG, error.message) from error
        if resource_type == ResourceType.BROKER:
            if not name:
                return cluster_entries(self._configs)
            check_broker_name(name, self._configs.current.broker_id)
            return broker_entries(self._configs)
        if resource_type == ResourceType.BROKER_LOGGER:
            if not name:
                raise KafkaError(ErrorCode.INVALID_REQUEST, "Broker id must not be empty")
            check_broker_name(name, self._configs.current.broker_id, may_be_empty=False)
            return logger_entries(log_levels.levels())
        raise unsupported(resource_type)

    def error_response(self, ctx: RequestContext, request: Any, code: ErrorCode) -> Any:
        """The code for every resource."""
        return DescribeConfigsResponse(
            results=[_result(resource, code, code.text, []) for resource in request.resources]
        )


def _result(resource: Any, code: ErrorCode, message: str | None, configs: list[Any]) -> Any:
    return DescribeConfigsResult(
        error_code=code,
        error_message=message,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
        configs=configs,
    )


def _describe(entry: ConfigEntry, request: Any) -> Any:
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
