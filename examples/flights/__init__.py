"""The worked example: a year of flights from New York, and the weather, through broker and Spark.

    table       the input, and the results that pandas computes from it
    arrivals    the order in which its records arrive, with late ones and heartbeats
    produce     writes them to topics with confluent-kafka
    join        flights with their weather: one function for streams and tables
    stream      its driver, a process of its own; `driver` starts, follows and kills it
    results     the results, as tables to compare
    consume     reads a topic with a group of kafka-python members
    aggregate   totals per carrier by Spark, topic to topic

`scripts/example-flights` runs them in order on a broker of its own.
"""
