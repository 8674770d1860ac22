"""The cases of `micro.py`, a file for each kind; each prepares itself in an empty folder."""

from micro_cases import codecs, connections, handlers, records

CASES = records.CASES | codecs.CASES | handlers.CASES | connections.CASES
