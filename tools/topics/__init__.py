"""`pykafkalog topics`: list, describe, sizes, watch; create, alter, delete, trim.

`command` has the arguments. `survey` asks brokers, `listing` prints the answers, `watching`
computes rates from two of them. `changes` creates, alters and deletes topics, `trimming` plans and
deletes records.
"""

from tools.topics.command import add_parser

__all__ = ["add_parser"]
