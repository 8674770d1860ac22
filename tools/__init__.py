"""The `pykafkalog` command line, a module or package per command."""
