"""pykafkalog: a Kafka-compatible broker, its command line, and a reader of its files.

For programs there is `pykafkalog.reader`: the files of Kafka's log directories as Python values
and numpy columns, without a broker. For people there are the commands `pykafkalog-broker` and
`pykafkalog` (`python -m pykafkalog` is the latter). Every other module belongs to the inside and
may change with any version.
"""

from typing import TYPE_CHECKING

__all__ = ["__version__"]

__version__: str

if not TYPE_CHECKING:  # a type checker would believe that every name is there

    def __getattr__(name: str) -> str:
        # Looked up when it is asked for: that takes longer than everything else here.
        if name != "__version__":
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from importlib.metadata import version

        return version(__name__)
