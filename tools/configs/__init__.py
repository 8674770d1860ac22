"""`pykafkalog configs`: settings of topics, brokers, the cluster and loggers.

`command` has the arguments, `settings` asks for values and changes them, `listing` prints them.
"""

from tools.configs.command import add_parser

__all__ = ["add_parser"]
