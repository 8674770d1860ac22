"""`pykafkalog cluster`: brokers, partitions, health, features and the versions of APIs.

`command` has the arguments, `survey` asks the brokers, `replica_ends` how far replicas are,
`lagging` and `health` judge the values, `listing` prints them, `watching` does so again and again.
"""

from tools.cluster.command import add_parser

__all__ = ["add_parser"]
