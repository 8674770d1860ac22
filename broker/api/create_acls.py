"""CreateAcls (key 30): add access rules.

Behaviour (S-ACL-7)
* Each rule has its own result; those that are valid are added all or none. A rule that is there
  already stays, without an error.
* INVALID_REQUEST for a resource type, pattern type, operation or permission that a rule cannot have
  (UNKNOWN, ANY, MATCH), an empty name, another cluster than `kafka-cluster`, a principal without a
  colon, and a host that is empty or an invalid range of addresses.
* Without an authorizer SECURITY_DISABLED for each rule: nothing would enforce it, and its author
  must learn that.
"""

from typing import TYPE_CHECKING, Final

from broker import many
from broker.api_facts import Api
from broker.request import RequestContext
from broker.security.access import ALTER_CLUSTER
from protocol.acls.rules import CLUSTER_NAME, WILDCARD, Rule
from protocol.acls.vocabulary import (
    Operation,
    PatternType,
    PermissionType,
    ResourceType,
)
from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode, KafkaError, shortened
from protocol.messages.create_acls import (
    AclCreation,
    AclCreationResult,
    CreateAclsRequest,
    CreateAclsResponse,
)
from storage.waits import PAUSE

if TYPE_CHECKING:
    from broker.security.acl_store import AclStore

API: Final = Api(
    key=ApiKey.CREATE_ACLS,
    versions=(1, 3),
    most_elements=10_000,
    # AclApis.handleCreateAcls
    accesses=(ALTER_CLUSTER,),
    make=lambda s: CreateAclsHandler(s.acls),
)


class CreateAclsHandler:
    """Adds rules; refuses with SECURITY_DISABLED if there is no authorizer."""

    def __init__(self, acls: "AclStore | None") -> None:
        self._acls = acls

    async def __call__(self, ctx: RequestContext, request: CreateAclsRequest) -> CreateAclsResponse:
        """The response, when the rules are durable and in force."""
        if self._acls is None:
            return _refused(request, ErrorCode.SECURITY_DISABLED, "No Authorizer is configured.")
        rules: list[Rule] = []
        flaws: list[str | None] = []
        for creation in request.creations:
            rule = _rule(creation)
            flaw = flaw_of(rule)
            if flaw is None:
                rules.append(rule)
            flaws.append(flaw)
            await PAUSE
        try:
            await self._acls.create(rules)
        except KafkaError as error:
            return _refused(request, error.code, str(error))
        return CreateAclsResponse(results=many.results(flaws, _result))

    def error_response(
        self, ctx: RequestContext, request: CreateAclsRequest, code: ErrorCode
    ) -> CreateAclsResponse:
        """The code for every rule."""
        return _refused(request, code, code.text)


def _rule(creation: AclCreation) -> Rule:
    return Rule.of_codes(
        creation.resource_type,
        creation.resource_name,
        creation.resource_pattern_type,
        creation.principal,
        creation.host,
        creation.operation,
        creation.permission_type,
    )


def flaw_of(rule: Rule) -> str | None:
    """Why there can be no such rule, in Kafka's words (`AclControlManager.validateNewAcl`)."""
    if rule.resource_type is ResourceType.CLUSTER and rule.resource_name != CLUSTER_NAME:
        return f"The only valid name for the CLUSTER resource is {CLUSTER_NAME}"
    if not rule.resource_name:
        return "Invalid empty resource name"
    for word, invalid in (
        (rule.resource_type, rule.resource_type <= ResourceType.ANY),
        (rule.pattern_type, rule.pattern_type <= PatternType.MATCH),
        (rule.operation, rule.operation <= Operation.ANY),
        (rule.permission_type, rule.permission_type <= PermissionType.ANY),
    ):
        if invalid:
            kind = type(word).__name__
            return f"Invalid {kind[0].lower()}{kind[1:]} {word.name}"
    if ":" not in rule.principal:
        return (
            f"Could not parse principal from `{rule.principal}` (no colon is present separating "
            "the principal type from the principal name)"
        )
    return _flaw_of_host(rule.host)


def _flaw_of_host(host: str) -> str | None:
    if not host:
        return "Host pattern cannot be null or empty"
    if host != WILDCARD and "/" in host:
        from protocol.acls.hosts import network_of

        try:
            network_of(host)
        except ValueError as error:
            return f"Invalid CIDR notation '{host}': {error}"
    return None


def _result(flaw: str | None) -> AclCreationResult:
    if flaw is None:
        return AclCreationResult(error_code=ErrorCode.NONE)
    return AclCreationResult(error_code=ErrorCode.INVALID_REQUEST, error_message=shortened(flaw))


def _refused(request: CreateAclsRequest, code: ErrorCode, message: str) -> CreateAclsResponse:
    result = AclCreationResult(error_code=code, error_message=message)
    return CreateAclsResponse(results=[result] * len(request.creations))
