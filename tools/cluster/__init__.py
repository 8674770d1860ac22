"""`pykafkalog cluster`: brokers, counts, health, features and the versions of APIs.

`command` has the arguments; `survey` asks, `health` judges (plain values), `listing` shows.
"""

from tools.cluster.command import add_parser

__all__ = ["add_parser"]
