"""Frames that clients send, right and wrong: for the fuzzer and the comparison with Kafka."""
