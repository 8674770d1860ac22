"""Creates, alters and deletes topics."""

import argparse
import json
from typing import Any, Final

from tools.connection import TIMEOUT_S, parse_settings
from tools.errors import CommandError, NoSuchTopic

_DELETION_S: Final = 10.0
"""How long brokers wait for a deletion, which goes on all the same."""


def create(admin: Any, args: argparse.Namespace) -> None:
    """Create the named topics. Raises CommandError with those that could not be."""
    from confluent_kafka import KafkaException
    from confluent_kafka.admin import NewTopic

    known = admin.list_topics(timeout=TIMEOUT_S).topics
    stand = {name for name in args.create if args.if_not_exists and name in known}
    partitions = args.partitions if args.partitions is not None else -1
    config = parse_settings(args.config)
    wanted = [
        NewTopic(name, partitions, args.replication_factor, config=config)
        for name in dict.fromkeys(args.create)
        if name not in stand
    ]
    answers = admin.create_topics(wanted) if wanted else {}
    refused = []
    for name in dict.fromkeys(args.create):
        if name in stand:
            _say(args, {"stands": name}, f"Topic {name} stands already.")
            continue
        try:
            answers[name].result(TIMEOUT_S)
        except KafkaException as error:
            why = str(error.args[0].str())
            refused.append(why if name in why else f"{name}: {why}")
        else:
            _say(args, {"created": name}, f"Created topic {name}.")
    if refused:
        raise CommandError("; ".join(refused))


def alter(admin: Any, args: argparse.Namespace) -> None:
    """Add partitions to the named topics, up to the first that cannot be. Raises CommandError."""
    from confluent_kafka.admin import NewPartitions

    if args.partitions is None:
        raise CommandError(
            "--alter needs --partitions; settings are changed by `pykafkalog configs`"
        )
    known = admin.list_topics(timeout=TIMEOUT_S).topics
    for name in args.alter:
        if name not in known:
            raise NoSuchTopic(name)
        admin.create_partitions([NewPartitions(name, args.partitions)])[name].result(TIMEOUT_S)
        _say(
            args,
            {"altered": name, "partitions": args.partitions},
            f"Topic {name} has {args.partitions} partitions now.",
        )


def delete(admin: Any, args: argparse.Namespace) -> None:
    """Delete the named topics, up to the first that cannot be. Raises CommandError."""
    from confluent_kafka import KafkaError, KafkaException

    known = admin.list_topics(timeout=TIMEOUT_S).topics
    for name in args.delete:
        if name not in known:
            if args.if_exists:
                continue
            raise NoSuchTopic(name)
        answer = admin.delete_topics(
            [name], operation_timeout=_DELETION_S, request_timeout=TIMEOUT_S
        )[name]
        try:
            answer.result(TIMEOUT_S)
        except KafkaException as error:
            if error.args[0].code() != KafkaError.REQUEST_TIMED_OUT:
                raise
            raise CommandError(
                f"{name} is being deleted, but not gone after {_DELETION_S:.0f} seconds: the"
                " deletion goes on when a broker that is away is back, or when the topic's"
                " reassignment is done (pykafkalog cluster --health)"
            ) from None
        _say(args, {"deleted": name}, f"Deleted topic {name}.")


def _say(args: argparse.Namespace, value: dict[str, Any], text: str) -> None:
    print(json.dumps(value) if args.json else text)
