"""The `pykafkalog` command line, one file per command."""
