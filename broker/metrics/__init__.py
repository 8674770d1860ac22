"""Prometheus metrics under the names that dashboards for Kafka's JMX exporter use."""
