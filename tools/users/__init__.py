"""`pykafkalog users`: users with passwords (SCRAM), whether the broker runs or not."""

from tools.users.command import add_parser, run

__all__ = ["add_parser", "run"]
