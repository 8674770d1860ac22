"""The same requests to Apache Kafka and to this broker: docs/developing/hostile-clients.md."""
