"""The target topics: creates them with the partitions that rows need, and checks them first."""

from collections.abc import Mapping
from typing import Any, Final

from pipeline.errors import PipelineError
from pipeline.restore.job import SendJob
from pipeline.restore.sending import committed_positions

TIMEOUT_S: Final = 30.0


class Targets:
    """The topics of a restore on a broker."""

    def __init__(self, job: SendJob) -> None:
        from confluent_kafka.admin import AdminClient

        self._job = job
        self._settings = {**job.client, "bootstrap.servers": job.bootstrap, "log_level": 2}
        self._admin = AdminClient(self._settings)

    def ensure(
        self,
        wanted: Mapping[str, int],
        existing: Mapping[str, int],
        configs: Mapping[str, str],
        replication: int,
    ) -> list[str]:
        """Create missing topics; return their names. `wanted` has the least number of partitions.

        A new topic keeps its records (`retention.ms=-1`) unless `configs` says otherwise: retention
        uses the records' own timestamps and would delete old ones at once.

        Raises PipelineError if a topic has too few partitions or cannot be created.
        """
        from confluent_kafka import KafkaException
        from confluent_kafka.admin import NewTopic

        for topic, partitions in wanted.items():
            if topic in existing and existing[topic] < partitions:
                raise PipelineError(
                    f"{topic} has {existing[topic]} partitions, and the table has rows of"
                    f" {partitions}: pykafkalog topics --alter {topic} --partitions {partitions}"
                )
        missing = [topic for topic in wanted if topic not in existing]
        settings = {"retention.ms": "-1", **configs}
        made = (
            self._admin.create_topics(
                [NewTopic(topic, wanted[topic], replication, config=settings) for topic in missing]
            )
            if missing
            else {}
        )
        for topic, done in made.items():
            try:
                done.result(TIMEOUT_S)
            except KafkaException as error:
                raise PipelineError(f"{topic} cannot be made: {error.args[0].str()}") from None
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

    def log_append_time(self, topics: list[str]) -> list[str]:
        """Return the topics whose records get the broker's time instead of their own."""
        from confluent_kafka.admin import ConfigResource, ResourceType

        resources = [ConfigResource(ResourceType.TOPIC, topic) for topic in topics]
        found = []
        for resource, done in self._admin.describe_configs(resources).items():
            entry: Any = done.result(TIMEOUT_S).get("message.timestamp.type")
            if entry is not None and entry.value == "LogAppendTime":
                found.append(resource.name)
        return found
