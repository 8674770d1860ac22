"""`pykafkalog get-offsets`: first, last or time-based offsets of a topic's partitions."""

import argparse

from tools.connection import (
    TIMEOUT_S,
    add_command,
    admin_client,
    refusals_as_sentences,
)
from tools.errors import CommandError, NoSuchTopic
from tools.json_output import print_line

EXAMPLES = """\
  pykafkalog get-offsets orders                       the ends of partitions
  pykafkalog get-offsets orders --time earliest
  pykafkalog get-offsets orders --time max-timestamp  the newest record
  pykafkalog get-offsets orders --time 1700000000000  the first one from then on

A line is topic:partition:offset, as kafka-get-offsets.sh prints it, without an
offset where there is no such record.

exit code: 0 done; 1 failed, standard error says why; 2 wrong arguments"""


def add_parser(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command's parser."""
    parser = add_command(
        commands, "get-offsets", text="Offsets of a topic's partitions.", examples=EXAMPLES
    )
    parser.add_argument("topic", nargs="+")
    parser.add_argument(
        "--time",
        default="latest",
        help="latest, earliest, max-timestamp, or milliseconds since the epoch (default: latest)",
    )
    parser.add_argument("--json", action="store_true", help="one JSON object a line")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> None:
    """Print `topic:partition:offset` lines, as kafka-get-offsets does."""
    from confluent_kafka import TopicPartition
    from confluent_kafka.admin import OffsetSpec

    special = {
        "latest": OffsetSpec.latest,
        "earliest": OffsetSpec.earliest,
        "max-timestamp": OffsetSpec.max_timestamp,
    }
    if args.time in special:
        spec = special[args.time]()
    elif args.time.isdigit():
        spec = OffsetSpec.for_timestamp(int(args.time))
    else:
        raise CommandError(f"--time {args.time}: {', '.join(special)} or milliseconds")
    admin = admin_client(args)
    with refusals_as_sentences():
        known = admin.list_topics(timeout=TIMEOUT_S).topics
        for name in args.topic:
            if name not in known:
                raise NoSuchTopic(name)
            wanted = {
                TopicPartition(name, number): spec for number in sorted(known[name].partitions)
            }
            for place, found in admin.list_offsets(wanted).items():
                offset = found.result(TIMEOUT_S).offset
                if args.json:
                    print_line(
                        {
                            "topic": place.topic,
                            "partition": place.partition,
                            "offset": None if offset < 0 else offset,
                        }
                    )
                else:
                    print(f"{place.topic}:{place.partition}:{'' if offset < 0 else offset}")
