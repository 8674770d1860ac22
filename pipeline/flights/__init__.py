"""The worked example: a year of flights from New York through the broker and through Spark.

`table` is the input and what pandas says of it; `produce` writes it to a topic with
confluent-kafka; `consume` reads it with a group of kafka-python members; `aggregate` is the Spark
job from topic to topic. `scripts/example-flights` runs them in order on a broker of its own.
"""
