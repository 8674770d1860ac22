"""Faust: counts the records of each key in a table, which has a changelog.

It runs in its own environment.

BOOTSTRAP, SOURCE and TARGET are in the process's environment; arguments are Faust's own.
"""

import os

import faust

app = faust.App(
    "faust-counter",
    broker="kafka://" + os.environ["BOOTSTRAP"],
    store="memory://",
    version=1,
    topic_partitions=int(os.environ["PARTITIONS"]),
    topic_replication_factor=1,
    web_enabled=False,
    broker_commit_interval=0.2,
    broker_session_timeout=6.0,
    broker_heartbeat_interval=1.0,
)
source = app.topic(os.environ["SOURCE"], key_type=str, value_type=int)
target = app.topic(os.environ["TARGET"], key_type=str, value_serializer="json")
counts = app.Table("counts", default=int, partitions=int(os.environ["PARTITIONS"]))


@app.agent(source)
async def count(stream: "faust.Stream[int]") -> None:
    """The number of the record among those of its key."""
    async for key, value in stream.items():
        counts[key] += 1
        await target.send(key=key, value={"id": value, "count": counts[key]})


if __name__ == "__main__":
    app.main()
