"""Programs of their own that read a broker's directories, and do not need it to run.

`pykafkalog adopt` and the tools that explain start them (`python -m broker.offline.adopt`): tools
do not import the daemon.
"""
