"""The command line of dump-log: the options of kafka-dump-log.sh by their names, and short ones.

Options that need a JVM are refused, with advice on what to do instead.
"""

import argparse
from dataclasses import dataclass

from tools.errors import CommandError
from tools.usage import command_parser
from tools.whole_numbers import whole

EXAMPLES = """\
  pykafkalog dump-log /tmp/kafka-logs/orders-0       every file of a partition
  pykafkalog dump-log --deep /tmp/kafka-logs/orders-0/*.log
                                                     with keys and values
  pykafkalog dump-log --deep-iteration --files orders-0/00000000000000000000.log
                                                     as kafka-dump-log.sh
  pykafkalog dump-log --max-bytes 65536 --deep orders-0     its first 64 KiB
  pykafkalog dump-log --skip-record-metadata --print-data-log orders-0
                                                     keys and values, no more
  pykafkalog dump-log --index-sanity-check orders-0  would a start rebuild it?
  pykafkalog dump-log --verify-index-only orders-0   does each entry fit?
  pykafkalog dump-log --offsets-decoder __consumer_offsets-7/*.log
                                                     groups, commits in words
  pykafkalog dump-log /tmp/kafka-logs                checkpoints and the like
  pykafkalog dump-log --json --deep orders-0 | jq .payload    JSON lines

which files:
  .log .index .timeindex .txnindex .snapshot (also with .deleted, .cleaned or
  .swap behind), leader-epoch-checkpoint, partition.metadata, quorum-state and
  <offset>-<epoch>.checkpoint (KRaft); of a log directory: recovery-point-,
  replication-, log-start- and cleaner-offset-checkpoint, meta.properties,
  bootstrap.checkpoint, .kafka_cleanshutdown.
  A partition directory stands for all its files, a log directory for its own
  files (not those of its partitions). Nothing is written, so a broker may be
  running.

problems (bad checksums, torn ends, indexes that do not fit) are told at the
end, on standard error.
exit code: 0 all is well; 1 something is damaged, or a file could not be read

of Kafka's tool are missing: --value-decoder-class and --key-decoder-class,
which name Java classes (use --json and decode in a pipe), and the decoders of
cluster metadata, remote log metadata and share groups."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The choice of what to show, and how."""

    deep: bool = False
    """Show records too."""
    contents: bool = False
    """Show records' keys and values too."""
    metadata: bool = True
    """Show records' offsets, timestamps, sizes and headers: all but keys and values."""
    sanity_only: bool = False
    """For indexes, only make the checks of a broker's start."""
    verify_only: bool = False
    """For indexes, show only problems."""
    check: bool = False
    """With a .log, check its indexes as well."""
    max_bytes: int | None = None
    max_message_size: int = 5 * 1024 * 1024
    decoder: str | None = None
    """`offsets` or `transactions`: decode keys and values as that coordinator's records."""
    as_json: bool = False


def add_arguments(
    commands: "argparse._SubParsersAction[argparse.ArgumentParser]",
) -> argparse.ArgumentParser:
    """Add and return the command's parser."""
    text = "Show the files of a log: batches, records, indexes, snapshots, checkpoints."
    parser = command_parser(
        commands,
        "dump-log",
        text=text,
        description=f"{text}\nLines and options are those of Kafka's kafka-dump-log.sh.",
        examples=EXAMPLES,
    )
    parser.add_argument(
        "paths", nargs="*", metavar="PATH", help="files, partition or log directories"
    )
    parser.add_argument(
        "--files", action="append", default=[], metavar="FILE,FILE", help="the same, with commas"
    )
    parser.add_argument("--json", action="store_true", help="one JSON object a line")
    _record_options(parser.add_argument_group("records (.log)"))
    _index_options(parser.add_argument_group("indexes (.index .timeindex)"))
    return parser


def _record_options(group: "argparse._ArgumentGroup") -> None:
    group.add_argument(
        "--deep-iteration",
        action="store_true",
        help="open every batch: a line for each record, without key and value",
    )
    group.add_argument(
        "--deep",
        "--print-data-log",
        dest="print_data_log",
        action="store_true",
        help="the same with keys and values",
    )
    group.add_argument(
        "--skip-record-metadata",
        action="store_true",
        help="of records only keys and values; of control records nothing",
    )
    group.add_argument(
        "--max-bytes",
        type=whole(64, least=0),
        metavar="SIZE",
        help="only the batches that lie in the first SIZE bytes of a file",
    )
    group.add_argument(
        "--offsets-decoder",
        action="store_true",
        help="records of __consumer_offsets in words (implies --print-data-log)",
    )
    group.add_argument(
        "--transaction-log-decoder",
        action="store_true",
        help="records of __transaction_state in words (implies --print-data-log)",
    )
    for name in ("--value-decoder-class", "--key-decoder-class"):
        group.add_argument(
            name, metavar="CLASS", help="a Java class in Kafka's tool; not possible here"
        )


def _index_options(group: "argparse._ArgumentGroup") -> None:
    group.add_argument(
        "--index-sanity-check",
        action="store_true",
        help="only look whether the file may be right by itself, as a start of the broker does",
    )
    group.add_argument(
        "--verify-index-only",
        action="store_true",
        help="print no entries, only those that say something else than the log",
    )
    group.add_argument(
        "--check", action="store_true", help="with a .log, verify the indexes beside it"
    )
    group.add_argument(
        "--max-message-size",
        type=whole(64, least=0),
        default=Options.__dataclass_fields__["max_message_size"].default,
        metavar="SIZE",
        help="a batch that an index leads to is not expected to be larger (default: %(default)s)",
    )


def options_of(args: argparse.Namespace) -> Options:
    """Return the options of parsed arguments. Raises CommandError for what is not supported."""
    if args.value_decoder_class or args.key_decoder_class:
        raise CommandError(
            "--value-decoder-class and --key-decoder-class load Java classes; this is no JVM. "
            "Print the bytes with --json --deep and decode them in a pipe"
        )
    if args.offsets_decoder and args.transaction_log_decoder:
        raise CommandError("take either --offsets-decoder or --transaction-log-decoder")
    decoder = "offsets" if args.offsets_decoder else None
    decoder = "transactions" if args.transaction_log_decoder else decoder
    contents = args.print_data_log or decoder is not None
    return Options(
        deep=args.deep_iteration or contents,
        contents=contents,
        metadata=not args.skip_record_metadata,
        sanity_only=args.index_sanity_check,
        verify_only=args.verify_index_only,
        check=args.check,
        max_bytes=args.max_bytes,
        max_message_size=args.max_message_size,
        decoder=decoder,
        as_json=args.json,
    )
