"""A language-model server's cache of keys and values: requests, blocks over GPU, host and SSD.

    requests.py   a trace of requests: when each came, and the blocks of its prompt
    cache.py      blocks in tiers, each with an eviction policy; what every request found
    report.py     hits, bytes over each link, time to first token, and what more memory is worth

docs/serving.md is the page for users.
"""
