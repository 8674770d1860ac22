"""Kafka's Java clients in the session's JVM, with the settings that Spark's kafka source takes.

So a user who reads topics through Spark needs no second set of settings (logins, stores of keys).

A call from Python to the JVM takes a tenth of a millisecond. Work that needs many calls, for each
record or each config, is therefore a few lines of Java, which `compiled` makes into a function.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

_BYTES: Final = "org.apache.kafka.common.serialization.ByteArrayDeserializer"


@contextmanager
def java_admin(session: Any, settings: Mapping[str, str]) -> Iterator[Any]:
    """Open an `Admin` for the block."""
    client = session._jvm.org.apache.kafka.clients.admin.Admin.create(dict(settings))
    try:
        yield client
    finally:
        client.close()


@contextmanager
def java_consumer(session: Any, settings: Mapping[str, str]) -> Iterator[Any]:
    """Open a `KafkaConsumer` of bytes for the block, without a group."""
    wanted = {**settings, "key.deserializer": _BYTES, "value.deserializer": _BYTES}
    client = session._jvm.org.apache.kafka.clients.consumer.KafkaConsumer(wanted)
    try:
        yield client
    finally:
        client.close()


def compiled(
    session: Any, code: str, result: str, parameters: Mapping[str, str], imports: Sequence[str]
) -> Callable[..., Any]:
    """Return the function whose body is `code`; all types are names of Java classes.

    Spark compiles its queries with the same compiler (Janino), which knows no generic types.
    """
    jvm, gateway = session._jvm, session.sparkContext._gateway
    loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()

    def array(kind: Any, *values: Any) -> Any:
        made = gateway.new_array(kind, len(values))
        for number, value in enumerate(values):
            made[number] = value
        return made

    classes = [loader.loadClass(name) for name in parameters.values()]
    script = jvm.org.codehaus.janino.ScriptEvaluator()
    script.setParentClassLoader(loader)
    script.setDefaultImports(array(jvm.java.lang.String, *imports))
    script.setReturnType(loader.loadClass(result))
    script.setParameters(
        array(jvm.java.lang.String, *parameters), array(jvm.java.lang.Class, *classes)
    )
    script.setThrownExceptions(array(jvm.java.lang.Class, loader.loadClass("java.lang.Exception")))
    script.cook(code)
    return lambda *values: script.evaluate(array(jvm.java.lang.Object, *values))
