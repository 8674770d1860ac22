"""The arguments of `pykafkalog cluster`, and the dispatch to its parts."""

import argparse

from tools.connection import add_command

EXAMPLES = """\
  pykafkalog cluster                  brokers, counts, features, health
  pykafkalog cluster --health         what is wrong; the exit code says so, too
  pykafkalog cluster --api-versions   which APIs in which versions
  pykafkalog cluster --json

The controller is the one that brokers name to clients; on a KRaft cluster with
controllers of their own that is a broker which hands requests on to it.

exit code: 0 done, with --health: healthy; 1 failed, standard error says why,
with --health: something is wrong; 2 wrong arguments"""


def add_parser(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command's parser."""
    parser = add_command(
        commands, "cluster", text="Brokers, health, features and API versions.", examples=EXAMPLES
    )
    action = parser.add_mutually_exclusive_group()
    action.add_argument(
        "--health", action="store_true", help="only what is wrong; exit code 1 if anything is"
    )
    action.add_argument("--api-versions", action="store_true", help="APIs and their versions")
    parser.add_argument("--json", action="store_true", help="one JSON document")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run the command; return 1 if `--health` finds a problem. Raises CommandError."""
    from tools.cluster import listing
    from tools.cluster.survey import survey
    from tools.wire.brokers import brokers

    with brokers(args) as cluster:
        if args.api_versions:
            versions = {number: link.versions for number, link in cluster.every()}
            listing.show_versions(versions, as_json=args.json)
            return 0
        view = survey(cluster)
    if args.health:
        listing.show_health(view.findings, as_json=args.json)
        return 1 if view.findings else 0
    listing.show_cluster(view, as_json=args.json)
    return 0
