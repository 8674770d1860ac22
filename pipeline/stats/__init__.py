"""What is in topics: how much and when, how large, which keys, what compaction and transactions do.

    values.py        what is found out, as frozen values
    distribution.py  percentiles, histograms and inequality, from counts
    collecting.py    the values from a frame of Spark's kafka source, or of the direct reader
    files.py         what only log directories tell: batches, codecs, outcomes of transactions
    tables.py        the values as tables, for a terminal
    page.py, plots.py  the same as one HTML page

Records are read once: what is asked of each (sizes, time, key) is kept by Spark, and every number
comes from that. Values are not kept.
"""
