"""Words of the command line as rules, filters and actions."""

import argparse
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, TypeVar

from protocol.acls.filters import RuleFilter
from protocol.acls.rules import CLUSTER_NAME, WILDCARD, Pattern, Rule
from protocol.acls.vocabulary import (
    SUPPORTED,
    Operation,
    PatternType,
    PermissionType,
    ResourceType,
    from_name,
)
from tools.errors import CommandError

PRODUCER: Final = {
    ResourceType.TOPIC: (Operation.WRITE, Operation.DESCRIBE, Operation.CREATE),
    ResourceType.TRANSACTIONAL_ID: (Operation.WRITE, Operation.DESCRIBE),
}
"""The operations that `kafka-acls.sh --producer` allows."""
CONSUMER: Final = {
    ResourceType.TOPIC: (Operation.READ, Operation.DESCRIBE),
    ResourceType.GROUP: (Operation.READ,),
}
"""The operations that `kafka-acls.sh --consumer` allows."""

_Kind = TypeVar("_Kind", PatternType, Operation, PermissionType)


@dataclass(frozen=True, slots=True)
class Action:
    """An action that a client may attempt."""

    principal: str
    host: str
    operation: Operation
    resource_type: ResourceType
    name: str


def principal_of(word: str) -> str:
    """`alice` is a user; other types are named, as in `Group:admins`."""
    return word if ":" in word else f"User:{word}"


def plain(word: ResourceType | Operation | PermissionType | PatternType) -> str:
    """The word as people write it: `describe-configs`, `transactional-id`."""
    return word.name.lower().replace("_", "-")


def operation_of(word: str) -> Operation:
    """`read`, `describe-configs`, `DescribeConfigs`. Raises CommandError."""
    found = from_name(Operation, word.replace("-", "_"))
    if found is None or found <= Operation.ANY:
        known = ", ".join(plain(one) for one in Operation if one > Operation.ANY)
        raise CommandError(f"there is no operation {word}; there are {known}")
    return found


def resources(args: argparse.Namespace) -> list[tuple[ResourceType, str]]:
    """The resources that are named, each with its type."""
    found = [
        (kind, name)
        for kind, names in (
            (ResourceType.TOPIC, args.topic),
            (ResourceType.GROUP, args.group),
            (ResourceType.TRANSACTIONAL_ID, args.transactional_id),
            (ResourceType.DELEGATION_TOKEN, args.delegation_token),
            (ResourceType.USER, map(principal_of, args.user_principal)),
        )
        for name in names
    ]
    return found + [(ResourceType.CLUSTER, CLUSTER_NAME)] * args.cluster


def operations(args: argparse.Namespace) -> list[Operation]:
    """The operations that are named."""
    return list(map(operation_of, args.operation))


def rules(args: argparse.Namespace) -> list[Rule]:
    """The rules to add, in order. Raises CommandError."""
    who = [(principal_of(word), PermissionType.ALLOW) for word in args.allow]
    who += [(principal_of(word), PermissionType.DENY) for word in args.deny]
    if not who:
        raise CommandError("--add needs --allow PRINCIPAL or --deny PRINCIPAL")
    if not resources(args):
        raise CommandError("--add needs a resource, such as --topic TOPIC")
    made = {
        Rule(*pattern, principal, args.host or WILDCARD, operation, permission)
        for pattern, operation in _granted(args)
        for principal, permission in who
    }
    return sorted(made)


def _granted(args: argparse.Namespace) -> Iterator[tuple[Pattern, Operation]]:
    """Yield what rules are to be about, and with which operations."""
    pattern_type = PatternType.PREFIXED if args.prefixed else PatternType.LITERAL
    named = operations(args)
    if not (named or args.producer or args.consumer):
        raise CommandError("--add needs --operation OP, --producer or --consumer")
    for kind, name in resources(args):
        # The cluster has one name.
        how = PatternType.LITERAL if kind is ResourceType.CLUSTER else pattern_type
        wanted = list(named)
        wanted += PRODUCER.get(kind, ()) if args.producer else ()
        wanted += CONSUMER.get(kind, ()) if args.consumer else ()
        if not wanted:
            given = "--producer" if args.producer else "--consumer"
            raise CommandError(f"{given} needs nothing of {plain(kind)} {name}")
        for operation in wanted:
            _require_supported(kind, operation)
            yield Pattern(kind, name, how), operation


def _require_supported(kind: ResourceType, operation: Operation) -> None:
    """Raise CommandError for an operation that resources of this type do not have."""
    if operation not in (Operation.ALL, *SUPPORTED[kind]):
        known = ", ".join(map(plain, (*SUPPORTED[kind], Operation.ALL)))
        raise CommandError(
            f"nobody asks for {plain(operation)} of a {plain(kind)}; there are {known}"
        )


def filters(args: argparse.Namespace) -> list[RuleFilter]:
    """The filters that select the rules that fit every option."""
    pattern_type = PatternType.MATCH
    if args.prefixed or args.literal:
        pattern_type = PatternType.PREFIXED if args.prefixed else PatternType.LITERAL
    elif args.remove:
        pattern_type = PatternType.LITERAL  # what a name covers is more than what was named
    named: Iterable[tuple[ResourceType, str | None]] = resources(args) or [(ResourceType.ANY, None)]
    return [
        RuleFilter(
            kind,
            name,
            # Without a name, MATCH fits every pattern, and LITERAL those of one kind.
            pattern_type if name is not None or args.prefixed or args.literal else PatternType.ANY,
            None if args.principal is None else principal_of(args.principal),
            args.host,
            operation,
        )
        for kind, name in named
        for operation in operations(args) or [Operation.ANY]
    ]


def action(args: argparse.Namespace) -> Action:
    """The action to explain. Raises CommandError."""
    about = resources(args)
    if args.principal is None or len(about) != 1 or len(args.operation) != 1:
        raise CommandError("--explain needs --principal, one --operation, and one resource")
    operation = operation_of(args.operation[0])
    (kind, name) = about[0]
    _require_supported(kind, operation)
    return Action(principal_of(args.principal), args.host or "127.0.0.1", operation, kind, name)


def covering(action: Action) -> RuleFilter:
    """The filter that selects all rules about the resource of an action."""
    return RuleFilter(action.resource_type, action.name, PatternType.MATCH)
