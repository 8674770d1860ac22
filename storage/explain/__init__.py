"""Why the records of a partition are still there, or will not be: what retention and the cleaner
would do now, as data.

    opened.py       a `Log` over files that are looked at only
    retention.py    segment by segment: taken by which rule, or kept until when and why

The rules are those that the broker runs (`storage.log.retention`, `storage.cleaner`); nothing here
decides anything. For `pykafkalog explain-retention` and `explain-cleaner`.
"""
