"""`pykafkalog topics`: list, describe, sizes, watch; create, alter, delete, trim.

`command` has the arguments. `survey` asks brokers for values, `listing` shows them, `watching`
makes rates of two of them; `changes` creates, alters and deletes, `trimming` plans and deletes.
"""

from tools.topics.command import add_parser

__all__ = ["add_parser"]
