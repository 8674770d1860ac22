"""Celery on Kafka: tasks, and as a program their sender. Runs in its own environment.

BOOTSTRAP and RESULTS (a directory) are in the process's environment.
"""

import os
import sys

from celery import Celery

app = Celery("sums", broker="confluentkafka://" + os.environ["BOOTSTRAP"])
app.conf.update(
    result_backend="file://" + os.environ["RESULTS"],
    task_acks_late=True,
    worker_prefetch_multiplier=1,
    broker_connection_retry_on_startup=True,
    broker_transport_options={
        "wait_time_seconds": 1,
        "kafka_common_config": {"log_level": 0},
        "kafka_consumer_config": {"session.timeout.ms": 6000},
    },
)


@app.task(name="square")
def square(number: int) -> int:
    """Return the square, by which the test sees that the result is right."""
    return number * number


if __name__ == "__main__":
    for number in range(int(sys.argv[1]), int(sys.argv[2])):
        square.apply_async((number,), task_id=f"task-{number}")
