"""`pykafkalog adopt`: let the broker serve log directories that Apache Kafka wrote.

The broker must be stopped. A table shows each topic that was found and the action taken; a second
run finds all topics known and changes nothing. `broker.offline.adopt` does the work in a process of
its own, because the command line never touches the daemon's metadata store.
"""

import argparse
import json
from typing import Any

from config.terminal import console
from tools.console import say
from tools.daemon_module import answer_of
from tools.usage import command_parser

EXAMPLES = """\
  pykafkalog adopt --dry-run server.properties    what would be registered
  pykafkalog adopt server.properties              register it
  pykafkalog adopt server.properties --override log.dirs=/disk1/kafka

exit code: 0 everything is registered; 1 something had to be left out, or it
failed, and standard error says why; 2 wrong arguments"""

LISTED = 20
"""Missing partitions of a topic that are named one by one."""

NOUNS = {"rules": "access rule", "users": "user", "quotas": "client with quotas"}
NOTABLE_ACTIONS = {"conflict": "red", "adopted": "green", "replaced": "yellow"}


def add_parser(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command's parser."""
    parser = command_parser(
        commands,
        "adopt",
        text="Register partition directories that Apache Kafka wrote.",
        description=(
            "Register every partition directory in log.dirs that the broker's metadata does\n"
            "not know, with the topics' configs where a KRaft metadata log lies beside.\n"
            "Access rules, users with passwords (SCRAM) and quotas in it are taken, once.\n"
            "The broker must be stopped, and so must Apache Kafka."
        ),
        examples=EXAMPLES,
    )
    parser.add_argument("properties", metavar="server.properties")
    parser.add_argument("--override", action="append", default=[], metavar="property=value")
    parser.add_argument("--dry-run", action="store_true", help="show it, change nothing")
    parser.add_argument("--json", action="store_true", help="print the summary as JSON")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Adopt what there is; return 1 if something had to be left out."""
    summary = _adopt(args)
    if args.json:
        print(json.dumps(summary, indent=2))
    else:
        _show(summary)
    conflicts = any(topic["action"] == "conflict" for topic in summary["topics"])
    return 1 if conflicts or summary["access"]["left_out"] else 0


def _adopt(args: argparse.Namespace) -> dict[str, Any]:
    words = [args.properties, *(f"--override={text}" for text in args.override)]
    words += ["--dry-run"] if args.dry_run else []
    summary: dict[str, Any] = answer_of("adopt", *words)
    return summary


def _show(summary: dict[str, Any]) -> None:
    from tools.tables import Coloured, print_table

    topics = summary["topics"]
    say(
        f"Broker {summary['broker_id']} of cluster {summary['cluster_id']}:"
        f" {_topics(len(topics))} in {', '.join(summary['log_dirs'])}"
    )
    if topics:
        rows = (
            (
                topic["name"],
                topic["partitions"] or len(topic["found"]),
                Coloured(topic["action"], NOTABLE_ACTIONS.get(topic["action"], "")),
                _configs(topic),
                "; ".join(_remarks(topic)),
            )
            for topic in topics
        )
        print_table(("topic", "partitions", "action", "own configs", "remarks"), rows)
    _show_access(summary["access"], dry_run=summary["dry_run"])
    changed = sum(topic["action"] not in ("known already", "conflict") for topic in topics)
    left_out = sum(topic["action"] == "conflict" for topic in topics)
    done = "to register" if summary["dry_run"] else "registered"
    console().print(
        f"{_topics(changed)} {done}"
        + (f", [red]{left_out} left out[/]" if left_out else "")
        + (". Nothing was changed: this was a dry run." if summary["dry_run"] else "."),
        soft_wrap=True,
    )
    if summary["start_refused"]:
        reason = summary["start_refused"].rstrip(".")
        say(f"The broker does not start on this file as it is: {reason}.")


def _topics(count: int) -> str:
    return f"{count} topic" if count == 1 else f"{count} topics"


def _show_access(access: dict[str, Any], *, dry_run: bool) -> None:
    """Say what of Kafka's rules, users and quotas comes along, and what does not."""
    from tools.tables import count_of

    found = [count_of(access[key], noun) for key, noun in NOUNS.items() if access[key]]
    if found:
        taken = "To take" if dry_run else "Took"
        say(f"{taken} from the KRaft metadata log: {', '.join(found)}.")
    for left_out in access["left_out"]:
        say(f"Left out of it, as nothing here can hold it: {left_out}.")


def _configs(topic: dict[str, Any]) -> str:
    if not topic["config"]:
        return f"none ({topic['config_source']})"
    pairs = [f"{key}={value}" for key, value in sorted(topic["config"].items())]
    return f"{', '.join(pairs)} (from the {topic['config_source']})"


def _remarks(topic: dict[str, Any]) -> list[str]:
    remarks = [topic["reason"]] if topic["reason"] else []
    if topic["missing"]:
        missing = topic["missing"]
        numbers = ", ".join(map(str, missing[:LISTED]))
        more = f" and {len(missing) - LISTED} others" if len(missing) > LISTED else ""
        remarks.append(f"no directory for partition {numbers}{more}: made empty at the next start")
    remarks += [f"not taken: {text}" for text in topic["dropped_configs"]]
    return remarks
