"""The target topics: creates them with the partitions that rows need, and checks them first."""

from collections.abc import Iterable, Mapping
from typing import Final

from pipeline.errors import PipelineError
from pipeline.restore.job import SendJob
from pipeline.restore.sending import committed_positions
from pipeline.restore.wanted import WantedTopic

TIMEOUT_S: Final = 30.0


class Targets:
    """The topics of a restore on a broker."""

    def __init__(self, job: SendJob) -> None:
        from confluent_kafka.admin import AdminClient

        self._job = job
        self._settings = {**job.client, "bootstrap.servers": job.bootstrap, "log_level": 2}
        self._admin = AdminClient(self._settings)

    def ensure(
        self, wanted: Mapping[str, WantedTopic], existing: Mapping[str, int], replication: int
    ) -> list[str]:
        """Create missing topics; return their names. `existing` has numbers of partitions.

        Raises PipelineError if a topic has too few partitions or cannot be created.
        """
        from confluent_kafka import KafkaException
        from confluent_kafka.admin import NewTopic

        for topic, one in wanted.items():
            if existing.get(topic, one.partitions) < one.partitions:
                raise PipelineError(
                    f"{topic} has {existing[topic]} partitions, and the archived topic, or what it"
                    f" has rows of, {one.partitions}: add them (pykafkalog topics --alter {topic}"
                    f" --partitions {one.partitions}), or restore to another topic (--rename,"
                    " --topic-prefix)"
                )
        missing = [topic for topic in wanted if topic not in existing]
        new = [
            NewTopic(topic, one.partitions, replication, config=dict(one.configs))
            for topic, one in wanted.items()
            if topic in missing
        ]
        for topic, done in self._admin.create_topics(new).items() if new else ():
            try:
                done.result(TIMEOUT_S)
            except KafkaException as error:
                raise PipelineError(
                    f"{topic} cannot be made: {error.args[0].str()}"
                    " (--topic-config NAME=VALUE makes it with another config, NAME= without it)"
                ) from None
        return missing

    def begin(self, places: Mapping[str, int], append: bool) -> dict[tuple[str, int], int]:
        """Return the progress of each partition, after committing 0 for those without one.

        A partition without progress must be empty unless `append`: it could hold the rows of an
        earlier restore whose group's offsets have expired (decision 66).

        Raises PipelineError if it is not empty.
        """
        all_places = [(topic, number) for topic, count in places.items() for number in range(count)]
        progress = committed_positions(self._job, all_places)
        new = [place for place in all_places if place not in progress]
        if not new:
            return progress
        from confluent_kafka import Consumer, TopicPartition

        consumer = Consumer(
            {**self._settings, "group.id": self._job.group, "enable.auto.commit": False}
        )
        try:
            for topic, number in new if not append else ():
                low, high = consumer.get_watermark_offsets(TopicPartition(topic, number), TIMEOUT_S)
                if high > low:
                    raise PipelineError(
                        f"{topic}-{number} holds records that this restore knows nothing of;"
                        " restore to another topic (--rename, --topic-prefix), or behind them"
                        " (--append)"
                    )
            consumer.commit(
                offsets=[TopicPartition(*place, 0) for place in new], asynchronous=False
            )
        finally:
            consumer.close()
        return {**dict.fromkeys(new, 0), **progress}

    def configs(self, topics: Iterable[str]) -> dict[str, dict[str, str]]:
        """Return the configs of each topic. Raises PipelineError if they cannot be read."""
        from confluent_kafka import KafkaException
        from confluent_kafka.admin import ConfigResource, ResourceType

        resources = [ConfigResource(ResourceType.TOPIC, topic) for topic in topics]
        found = {}
        for resource, done in self._admin.describe_configs(resources).items():
            try:
                entries = done.result(TIMEOUT_S)
            except KafkaException as error:
                raise PipelineError(
                    f"the configs of {resource.name} cannot be read: {error.args[0].str()}"
                ) from None
            found[resource.name] = {
                name: entry.value for name, entry in entries.items() if entry.value is not None
            }
        return found
