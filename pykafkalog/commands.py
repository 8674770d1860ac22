"""Entry points of the installed commands; each imports only its own part, to start quickly."""

from config.form import choose_form


def broker() -> int:
    """Run `pykafkalog-broker`, the daemon; return the exit code."""
    choose_form()
    from broker.__main__ import main

    return main()


def command_line() -> int:
    """Run `pykafkalog`, the command line of tools and pipeline; return the exit code."""
    choose_form()
    from tools.__main__ import FurtherCommand, main

    return main(
        further=(FurtherCommand("pipeline", "Topics to a lake and back, by Spark.", _pipeline),)
    )


def _pipeline() -> object:
    from pipeline import command

    return command
