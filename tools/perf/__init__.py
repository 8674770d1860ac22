"""`pykafkalog perf`: how fast a broker is, as one client sees it.

`command` has the arguments. `producing`, `consuming` and `end_to_end` run the tests and count
records in a `Measure`. `results` computes rates and percentiles, `report` prints and `plot` draws
them.
"""

from tools.perf.command import add_parser

__all__ = ["add_parser"]
