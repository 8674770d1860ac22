"""`pykafkalog transactions`: transactional ids, producers, and what holds back readers.

`command` has the arguments. `survey` asks brokers, `hanging` and `explanation` judge the answers
(pure), `ending` aborts, `listing` prints.
"""

from tools.transactions.command import add_parser

__all__ = ["add_parser"]
