"""The worked example: a year of flights from New York, and the weather, through broker and Spark.

    table       the input, and what pandas says of it
    arrivals    in which order its records come, late ones and heartbeats among them
    produce     writes them to topics with confluent-kafka
    join        flights with their weather: one function for streams and tables
    stream      its driver, a process of its own; `driver` starts, follows and kills that
    results     what came out, as tables that are compared
    consume     reads a topic with a group of kafka-python members
    aggregate   totals per carrier by Spark, topic to topic

`scripts/example-flights` runs them in order on a broker of its own.
"""
