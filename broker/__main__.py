"""The command `pykafkalog-broker`: arguments, log output, signals, exit code.

    pykafkalog-broker [--help | --version] server.properties [--override property=value]*

As Kafka's `kafka.Kafka` (S-START-1, S-START-5): no arguments prints the usage and fails; SIGTERM or
SIGINT stops cleanly (exit code 0), a second one stops at once; a start or stop that fails ends with
exit code 1. Log lines go to the standard output in Kafka's format; PYKAFKALOG_LOG_LEVEL sets the
level (default INFO).

Start-up time counts in milliseconds: modules that `--help` does not need are imported later.
"""

import gc
import logging
import os
import signal
import sys
from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING

from config.form import choose_form, form_that_runs
from config.terminal import shown_line, terminals_made_safe

if TYPE_CHECKING:
    from broker.server import BrokerServer
    from config.broker_config import BrokerConfig
    from storage.clock import Clock

USAGE = (
    "USAGE: pykafkalog-broker [--help] [--version] server.properties [--override property=value]*"
)
HELP = f"""\
{USAGE}

Runs a broker until SIGTERM or Ctrl-C. server.properties is a file in Kafka's format, an --override
wins over it:

  pykafkalog-broker server.properties
  pykafkalog-broker server.properties --override listeners=PLAINTEXT://127.0.0.1:0 \\
      --override log.dirs=/data/kafka

Port 0 takes a free port; the line "Listening on ..." tells which. Log lines go to standard output,
PYKAFKALOG_LOG_LEVEL (default INFO) says how many. Exit code 0: stopped as asked; 1: it could not
start, or failed, and the last line on standard error says why."""
LOG_LEVEL_VARIABLE = "PYKAFKALOG_LOG_LEVEL"
_SWITCH_INTERVAL_S = 0.0005
"""A thread of Python code delays each wake-up of the event loop by up to this (default: 5 ms)."""
_SAME_SIGNAL_S = 0.5
"""A signal this soon after the first is the same request: supervisors and process groups often
deliver it twice."""
GC_THRESHOLDS = (10_000, 5, 1_000)
"""Requests leave little garbage in cycles, so a full collection comes only after fifty million new
objects. Young objects are collected in small lots: a million of them (a large request, new
partitions) would stop the loop for a third of a second, fifty thousand do for 15 ms."""

logger = logging.getLogger(__package__)


class UsageError(Exception):
    """The command line is invalid; the message says why."""


class Arguments:
    """The parsed command line."""

    def __init__(self, argv: Sequence[str]) -> None:
        """Raises UsageError."""
        from config.definition import ConfigError
        from config.properties import parse_override

        self.overrides: dict[str, str] = {}
        positional = []
        rest = list(argv)
        while rest:
            word = rest.pop(0)
            if word == "--override" or word.startswith("--override="):
                text = word.partition("=")[2] if "=" in word else (rest.pop(0) if rest else "")
                try:
                    name, value = parse_override(text)
                except ConfigError as error:
                    raise UsageError(str(error)) from None
                self.overrides[name] = value
            elif word.startswith("-"):
                raise UsageError(f"{word} is not a recognized option")
            else:
                positional.append(word)
        if not positional:
            raise UsageError("no server.properties was named")
        if len(positional) > 1:
            raise UsageError(f"Found non argument parameters: {', '.join(positional[1:])}")
        self.properties_file = positional[0]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; return the exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    if "--version" in arguments:
        from importlib.metadata import version

        print("pykafkalog", version("pykafkalog"), f"({form_that_runs()})")  # noqa: T201 - the command line's own output
        return 0
    if not arguments or "--help" in arguments:
        # Kafka fails for --help too; a person who asked for help did nothing wrong.
        print(HELP if arguments else USAGE, file=sys.stdout if arguments else sys.stderr)
        return 0 if arguments else 1
    try:
        parsed = Arguments(arguments)
    except UsageError as error:
        print(f"{error}\n{USAGE}", file=sys.stderr)  # noqa: T201
        return 1
    with terminals_made_safe():
        return _run(parsed)


def _run(arguments: Arguments) -> int:
    gc.disable()  # start-up's objects stay, so searching them for garbage would waste time
    # numpy's OpenBLAS starts a thread per processor, which nothing here uses, and where it may not,
    # sends its own process a SIGINT, that is, stops the broker. Child processes inherit this.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from config.broker_config import load_broker_config
    from config.definition import ConfigError

    try:
        config = load_broker_config(arguments.properties_file, arguments.overrides)
    except ConfigError as error:
        print(f"pykafkalog-broker: {error}", file=sys.stderr)  # noqa: T201
        return 1
    _start_logging()
    logger.info("The hot modules are %s", form_that_runs())
    _tell_what_does_nothing(config)

    import trio

    from broker.server import BrokerServer
    from broker.world.on_machine import machine_world
    from broker.world.transport import BoundListener

    def announce(bound: Sequence[BoundListener]) -> None:
        for listener in bound:
            print(f"Listening on {listener}", flush=True)  # noqa: T201

    world = machine_world(config)

    async def live() -> bool:
        def started() -> None:
            gc.collect()
            gc.freeze()
            gc.set_threshold(*GC_THRESHOLDS)
            gc.enable()
            sys.setswitchinterval(_SWITCH_INTERVAL_S)
            server.watch.begin_turn()  # no request waited for that collection: not a long turn

        server = BrokerServer(
            config,
            world,
            announce=announce,
            on_started=started,
            check_buffers=sys.flags.dev_mode,
        )
        trio.lowlevel.add_instrument(server.watch)
        gc.callbacks.append(server.watch.note_collection)
        with trio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(_obey, signals, server, world.clock)
                went_well = await server.run()
                nursery.cancel_scope.cancel()
        if server.failure is not None:
            # Standard error too, for operators whose log goes elsewhere.
            print(f"pykafkalog-broker: {server.failure}", file=sys.stderr)  # noqa: T201
        return went_well

    return 0 if trio.run(live) else 1


def _tell_what_does_nothing(config: "BrokerConfig") -> None:
    from config.effects import unknown_names, without_effect

    if config.unknown:
        logger.warning(
            "The configurations %s were supplied but are not known.",
            ", ".join(unknown_names(config)),
        )
    idle = without_effect(config)
    if idle:
        logger.warning(
            "The configurations %s are known but have no effect in this broker.", ", ".join(idle)
        )


async def _obey(signals: AsyncIterator[int], server: "BrokerServer", clock: "Clock") -> None:
    """Stop the server at the first signal; end the process at once at the second."""
    asked_at: float | None = None
    async for number in signals:
        name = signal.Signals(number).name
        now = clock.monotonic()
        if asked_at is not None and now - asked_at < _SAME_SIGNAL_S:
            continue
        if asked_at is not None:
            logger.error("Terminating at once due to a second signal %s", name)
            logging.shutdown()
            os._exit(1)
        asked_at = now
        logger.info("Terminating process due to signal %s", name)
        server.request_shutdown()


class _OneLine(logging.Formatter):
    """Shows control characters of names that clients chose, in a file too: `tail` obeys them."""

    def formatMessage(self, record: logging.LogRecord) -> str:
        record.message = shown_line(record.message)
        return super().formatMessage(record)


def _start_logging() -> None:
    handler = logging.StreamHandler(sys.stdout)
    handler.setFormatter(_OneLine("[%(asctime)s] %(levelname)s %(message)s (%(name)s)"))
    logging.root.addHandler(handler)
    level = os.environ.get(LOG_LEVEL_VARIABLE, "INFO").upper()
    logging.root.setLevel(level if level in logging.getLevelNamesMapping() else "INFO")


if __name__ == "__main__":
    choose_form()
    sys.exit(main())
