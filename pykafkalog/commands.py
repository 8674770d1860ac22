"""What the installed commands call; each imports its own half only, because a start is counted."""


def broker() -> int:
    """`pykafkalog-broker`: the daemon. The exit code."""
    from broker.__main__ import main

    return main()


def command_line() -> int:
    """`pykafkalog`: topics, groups, configs, records, files. The exit code."""
    from tools.__main__ import main

    return main()
