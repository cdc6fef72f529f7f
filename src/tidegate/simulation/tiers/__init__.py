"""Tiers: near (GPU), middle (host) and far (SSD) memory, for data that outgrow the host too (GMT,
ASPLOS'24).

    state       where every page is, the books, the clock
    service     what a miss costs: many at once (GPU-orchestrated), or one after another (CPU-orchestrated)
    transfers   DMA, zero-copy and Hybrid-XT between near and middle
    distances   sampled pairs of virtual time and reuse distance
    events      what crosses between the engine and a placement policy
    engine      the compiled walk
    view        what an eviction or placement policy sees
    relay       how policies are called, and what becomes of what they raise
    simulation  a whole run

A page is in one tier only. A miss brings it near, never through the middle; a victim goes where the
placement policy says. Dirty pages that leave for the far tier are written, clean ones dropped.
"""
