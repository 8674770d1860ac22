"""Creates the topics of tests that have a real broker."""

from confluent_kafka.admin import AdminClient, NewTopic

PATIENCE_S = 60


def make_topic(bootstrap: str, *names: str, partitions: int = 1, **config: str) -> None:
    """Create topics; underscores in names of configs stand for dots."""
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    own = {key.replace("_", "."): value for key, value in config.items()}
    new = [NewTopic(name, partitions, 1, config=own) for name in names]
    for made in admin.create_topics(new).values():
        made.result(PATIENCE_S)
