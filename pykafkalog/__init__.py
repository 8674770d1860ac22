"""pykafkalog: a Kafka-compatible broker, its command line, and a reader of its files.

For programs there is `pykafkalog.reader`: the files of Kafka's log directories as Python values
and numpy columns, without a broker. For people there are the commands `pykafkalog-broker` and
`pykafkalog` (`python -m pykafkalog` is the latter). Every other module is internal and may change
with any version.
"""

from typing import TYPE_CHECKING

from config.form import keep_to_sources

__all__ = ["__version__"]

__version__: str

keep_to_sources()

if not TYPE_CHECKING:  # with a `__getattr__`, a type checker would accept any name

    def __getattr__(name: str) -> str:
        # Looked up on demand, because the lookup takes longer than the rest of this import.
        if name != "__version__":
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from importlib.metadata import version

        return version(__name__)
