"""`pykafkalog cluster`: brokers, counts, health, features and the versions of APIs.

`command` has the arguments, `survey` asks the brokers, `health` judges the values, `listing` prints
them.
"""

from tools.cluster.command import add_parser

__all__ = ["add_parser"]
