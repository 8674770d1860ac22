"""The cause of a failure of Spark, as a sentence."""

from pathlib import Path

import pytest

from pipeline.errors import PipelineError
from pipeline.failures import as_sentence


class Throwable:
    """A Java exception, as Py4J shows it."""

    def __init__(self, text: str, cause: "Throwable | None" = None) -> None:
        self._text, self._cause = text, cause

    def toString(self) -> str:
        return self._text

    def getCause(self) -> "Throwable | None":
        return self._cause


class FromJava(Exception):
    def __init__(self, *texts: str) -> None:
        super().__init__(texts[0])
        self._origin: Throwable | None = None
        for text in reversed(texts):
            self._origin = Throwable(text, self._origin)


@pytest.mark.parametrize(
    ("texts", "sentence"),
    [
        (
            (
                "org.apache.spark.sql.streaming.StreamingQueryException: [STREAM_FAILED] Query",
                "org.apache.spark.SparkException: Job aborted due to stage failure: Task 0",
                "org.apache.spark.SparkRuntimeException: [USER_RAISED_EXCEPTION] the value in"
                " topic t, partition 1, offset 5 is not the declared JSON SQLSTATE: P0001",
            ),
            "the value in topic t, partition 1, offset 5 is not the declared JSON",
        ),
        (
            (
                "org.apache.spark.SparkException: x",
                "java.util.concurrent.ExecutionException: y",
                "org.apache.kafka.common.errors.UnknownTopicOrPartitionException: This server",
            ),
            "a topic or partition does not exist",
        ),
        (
            (
                "org.apache.spark.SparkException: x",
                "org.apache.kafka.common.errors.TimeoutException: Timed out waiting for a node",
            ),
            "the broker did not answer: org.apache.kafka.common.errors.TimeoutException: Timed",
        ),
        (
            (
                "org.apache.spark.SparkException: x",
                "java.lang.IllegalStateException: [KAFKA_DATA_LOSS.START_OFFSET_RESET] Some data"
                " may have been lost. SQLSTATE: 22000\nSome hints",
            ),
            "are gone from Kafka, by retention or because the topic was made anew",
        ),
        (
            (
                "org.apache.spark.SparkException: Job aborted due to stage failure: Task 0",
                "org.apache.spark.api.python.PythonException: Traceback (most recent call last):\n"
                '  File "x.py", line 1, in f\n'
                "pykafkalog.pipeline.errors.PipelineError: t-0: fenced\n",
            ),
            "t-0: fenced",
        ),
        (("java.io.IOException: No space left on device",), "No space left on device"),
    ],
)
def test_the_innermost_reason_is_said_with_the_log(texts: tuple[str, ...], sentence: str) -> None:
    said = str(as_sentence(FromJava(*texts), Path("/tmp/spark.log")))
    assert sentence in said
    assert said.endswith("(log: /tmp/spark.log)")
    assert "SQLSTATE" not in said and "\n" not in said


def test_a_sentence_stays_one() -> None:
    error = PipelineError("as it is")
    assert as_sentence(error, Path("/tmp/spark.log")) is error
