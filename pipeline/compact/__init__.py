"""`pykafkalog pipeline compact`: small files of a table in the lake become few; safe to kill."""
