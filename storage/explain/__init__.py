"""Explains what retention and the cleaner would do to a partition's records now, as data.

    opened.py       a `Log` over files that are only read
    retention.py    segment by segment: deleted by which rule, or kept until when and why
    cleaning.py     the cleaner's verdict on a log, with all reasons
    dry_run.py      a cleaning that writes nothing: the fate of every record

The rules are those that the broker runs (`storage.log.retention`, `storage.cleaner`); this room has
none of its own. For `pykafkalog explain-retention` and `explain-cleaner`.
"""
