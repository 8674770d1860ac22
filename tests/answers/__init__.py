"""The same requests to Apache Kafka and to this broker: docs/hostile-clients.md."""
