"""`pykafkalog pipeline compact`: merges small files of a table in the lake; safe to kill."""
