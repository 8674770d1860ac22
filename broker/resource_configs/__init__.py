"""Configs of topics, brokers and loggers: how requests name, describe and change them."""
