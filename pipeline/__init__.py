"""Topics to a lake and back, by PySpark: `pykafkalog pipeline …`.

`session` starts Spark with its output in a file, `failures` turns its exceptions into one line, and
`command` is the command line, with a package per subcommand. Neither the broker nor other commands
import anything of this room; pyspark is imported only to run a job.
"""
