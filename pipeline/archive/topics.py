"""`topics.json`: what the topics of an archive were, so that a restore can make them again.

Rows do not tell it: a topic, or one of its partitions, may have none. Each run of an archive looks
when it starts, and after each of its batches. A topic that is gone stays as it was last seen.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, Final

from py4j.protocol import Py4JJavaError

from pipeline.archive.archiving import Source
from pipeline.archive.files import Files
from pipeline.errors import PipelineError
from pipeline.java_clients import compiled, java_admin

DECIDING: Final = frozenset(
    {"cleanup.policy", "max.message.bytes", "message.timestamp.type"}
    | {f"message.timestamp.{which}.max.ms" for which in ("before", "after")}
)
"""These decide which records a topic takes and keeps, so they are kept also where a topic has them
from its broker, which may not be the one that it is restored to."""
_OF_TOPIC: Final = "DYNAMIC_TOPIC_CONFIG"
_DESCRIBE: Final = """
    java.util.List wanted = java.util.Arrays.asList(names.split(","));
    java.util.List resources = new java.util.ArrayList();
    for (java.util.Iterator each = wanted.iterator(); each.hasNext();)
        resources.add(new ConfigResource(ConfigResource.Type.TOPIC, (String) each.next()));
    java.util.Map counts = admin.describeTopics((java.util.Collection) wanted).topicNameValues();
    java.util.Map configs = admin.describeConfigs(resources).values();
    java.util.Map told = new java.util.LinkedHashMap();
    for (int n = 0; n < resources.size(); n++) {
        Object[] topic = new Object[3];
        told.put(wanted.get(n), topic);
        try {
            Object described = ((KafkaFuture) counts.get(wanted.get(n))).get();
            topic[0] = Integer.valueOf(((TopicDescription) described).partitions().size());
            java.util.Map entries = new java.util.LinkedHashMap();
            Config config = (Config) ((KafkaFuture) configs.get(resources.get(n))).get();
            for (java.util.Iterator each = config.entries().iterator(); each.hasNext();) {
                ConfigEntry entry = (ConfigEntry) each.next();
                if (entry.value() != null)
                    entries.put(entry.name(), new String[] {entry.value(), entry.source().name()});
            }
            topic[1] = entries;
        } catch (java.util.concurrent.ExecutionException error) {
            topic[2] = error.getCause().toString();
        }
    }
    return new ObjectMapper().writeValueAsString(told);
"""
"""Tells of each topic, in JSON: [partitions, {config: [value, source]}, why one of both is null].
"""
_IMPORTED: Final = (
    "com.fasterxml.jackson.databind.ObjectMapper",
    "org.apache.kafka.clients.admin.Config",
    "org.apache.kafka.clients.admin.ConfigEntry",
    "org.apache.kafka.clients.admin.TopicDescription",
    "org.apache.kafka.common.KafkaFuture",
    "org.apache.kafka.common.config.ConfigResource",
)


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
        with java_admin(self._session, self._source.settings()) as admin:
            names = self._source.names(self._session)
            told = json.loads(self._describe(admin, ",".join(names))) if names else {}
        for name, (partitions, configs, why) in told.items():
            if partitions is None:
                problem = f"{name} cannot be described, so a restore makes it by its rows: {why}"
                continue
            if configs is None:
                problem = f"the configs of {name} cannot be kept for a restore: {why}"
                of_it = known.get(name, Topic(0, {})).configs
            else:
                of_it = kept(configs)
            seen[name] = Topic(partitions, of_it)
        return seen, problem

    @cached_property
    def _describe(self) -> Any:
        parameters = {"admin": "org.apache.kafka.clients.admin.Admin", "names": "java.lang.String"}
        return compiled(self._session, _DESCRIBE, "java.lang.String", parameters, _IMPORTED)


def _reason(error: Py4JJavaError) -> str:
    thrown = error.java_exception
    return str((thrown.getCause() or thrown).toString())
