"""`topics.json`: what the topics of an archive were, so that a restore can make them again.

Rows do not tell it: a topic, or one of its partitions, may have none. Each run of an archive looks
when it starts, and after each of its batches. A topic that is gone stays as it was last seen.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

from py4j.protocol import Py4JJavaError

from pipeline.archive.archiving import Source
from pipeline.archive.files import Files
from pipeline.errors import PipelineError
from pipeline.java_clients import java_admin

DECIDING: Final = frozenset(
    {"cleanup.policy", "max.message.bytes", "message.timestamp.type"}
    | {f"message.timestamp.{which}.max.ms" for which in ("before", "after")}
)
"""These decide which records a topic takes and keeps, so they are kept also where a topic has them
from its broker, which may not be the one that it is restored to."""
_OF_TOPIC: Final = "DYNAMIC_TOPIC_CONFIG"


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic as it was."""

    partitions: int
    configs: Mapping[str, str]
    """Those that were set on it, and `DECIDING`."""


def parsed(text: str, path: str) -> dict[str, Topic]:
    """Parse the file's text. Raises PipelineError."""
    try:
        return {name: Topic(**topic) for name, topic in json.loads(text).items()}
    except (ValueError, TypeError, AttributeError) as error:
        raise PipelineError(
            f"{path} does not describe topics: {error} (the next run of archive writes it anew, if"
            " you move it away; without it, a restore goes by the rows alone)"
        ) from None


def kept(configs: Mapping[str, tuple[str, str]]) -> dict[str, str]:
    """Return the configs to keep, of (value, source) by name."""
    return {
        name: value
        for name, (value, source) in sorted(configs.items())
        if source == _OF_TOPIC or name in DECIDING
    }


class TopicsFile:
    """Keeps the file of one archive up to date."""

    def __init__(self, session: Any, source: Source, path: str) -> None:
        self._session = session
        self._source = source
        self._path = path
        self._files = Files(session)

    def refresh(self) -> str | None:
        """Look at the topics and write down what is new of them.

        Return words about what could not be looked at, and is as it was in the file. Raises
        PipelineError if the file makes no sense.
        """
        text = self._files.read(self._path)
        known = {} if text is None else parsed(text, self._path)
        try:
            seen, problem = self._seen(known)
        except Py4JJavaError as error:
            return f"the topics cannot be described for a restore: {_reason(error)}"
        now = json.dumps({name: asdict(topic) for name, topic in sorted(seen.items())}, indent=1)
        if now != text:
            self._files.write(self._path, now)
        return problem

    def _seen(self, known: Mapping[str, Topic]) -> tuple[dict[str, Topic], str | None]:
        seen, problem = dict(known), None
        kinds = self._session._jvm.org.apache.kafka.common.config.ConfigResource
        with java_admin(self._session, self._source.settings()) as admin:
            names = self._source.names(self._session)
            counts = admin.describeTopics(names).topicNameValues()
            topic = kinds.Type.TOPIC
            resources = {name: kinds(topic, name) for name in names}
            configs = admin.describeConfigs(list(resources.values())).values()
            for name, resource in resources.items():
                before = known.get(name, Topic(0, {}))
                partitions, why = _answer(counts[name])
                if partitions is None:
                    problem = (
                        f"{name} cannot be described, so a restore makes it by its rows: {why}"
                    )
                    continue
                found, why = _answer(configs[resource])
                if found is None:
                    problem = f"the configs of {name} cannot be kept for a restore: {why}"
                of_it = before.configs if found is None else kept(_entries(found))
                seen[name] = Topic(partitions.partitions().size(), of_it)
        return seen, problem


def _answer(future: Any) -> tuple[Any, str]:
    """Return (the result of a future, or None; why there is none)."""
    try:
        return future.get(), ""
    except Py4JJavaError as error:
        return None, _reason(error)


def _reason(error: Py4JJavaError) -> str:
    thrown = error.java_exception
    return str((thrown.getCause() or thrown).toString())


def _entries(config: Any) -> dict[str, tuple[str, str]]:
    return {
        entry.name(): (entry.value(), entry.source().name())
        for entry in config.entries().toArray()
        if entry.value() is not None
    }
