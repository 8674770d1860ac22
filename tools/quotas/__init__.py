"""`pykafkalog quotas`: quotas of users, client ids and addresses, and who is throttled by them.

`command` has the arguments, `entities` asks for quotas and changes them, `throttled` reads brokers'
metrics, `listing` prints.
"""

from tools.quotas.command import add_parser

__all__ = ["add_parser"]
