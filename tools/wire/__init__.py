"""Requests that client libraries have no function for, built from `protocol.messages`.

`brokers` are a cluster's brokers, with a link to each (`tools.link`); `offsets` asks for offsets,
`refusals` turns error codes into sentences (decision 70).
"""
