"""Topics to a lake and back, by PySpark: `pykafkalog pipeline …`.

`session` starts Spark quietly and `failures` says in a line what it died of; `command` is the
command line, one module per subcommand. Nothing here is imported by the broker, nor at the start
of another command; pyspark only where a job is run.
"""
