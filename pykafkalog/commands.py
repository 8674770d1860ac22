"""What the installed commands call; each imports its own half only, because a start is counted."""


def broker() -> int:
    """`pykafkalog-broker`: the daemon. The exit code."""
    from broker.__main__ import main

    return main()


def command_line() -> int:
    """`pykafkalog`: topics, groups, configs, records, files, the pipeline. The exit code."""
    from tools.__main__ import FurtherCommand, main

    return main(
        further=(FurtherCommand("pipeline", "Topics to a lake and back, by Spark.", _pipeline),)
    )


def _pipeline() -> object:
    from pipeline import command

    return command
