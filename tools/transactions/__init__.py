"""`pykafkalog transactions`: ids, producers of partitions, what holds readers up.

`command` has the arguments; `survey` asks brokers for values, `hanging` and `explanation` judge
them (pure), `ending` aborts, `listing` shows.
"""

from tools.transactions.command import add_parser

__all__ = ["add_parser"]
