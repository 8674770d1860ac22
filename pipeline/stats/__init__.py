"""Statistics of topics: throughput, sizes, keys, compaction, transactions.

    values.py        the statistics, as frozen values
    distribution.py  percentiles, histograms and inequality, from counts
    collecting.py    the values from a frame of Spark's kafka source, or of the direct reader
    files.py         what only log directories show: batches, codecs, outcomes of transactions
    tables.py        the values as tables, for a terminal
    page.py, plots.py  the same as one HTML page

Records are read once: Spark keeps the sizes, the time and the key of each, from which every number
is computed. Values are not kept.
"""
