"""A client may lose its connection by what it sends; it delays the others by milliseconds only.

Each test starts a broker process, lets a good client work beside it (`good_client`), does one
hostile thing, and asks four questions (`watch`): did the good client ever wait longer than 250 ms,
did the broker's memory grow by more than 300 MB or not come back, was anything acknowledged lost,
is the process the same. `attacks` has the hostile requests, `bombs` the batches.
"""
