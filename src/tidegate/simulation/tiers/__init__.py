"""Tiers: near (GPU), middle (host) and far (SSD) memory, for data that outgrow the host (GMT,
ASPLOS'24).

    simulation  a whole run
    engine      the compiled walk over all touches
    candidates  pages that may leave near memory
    middle      where they go
    service     what a miss costs: many at once (GPU-orchestrated), or one at a time (by the CPU)
    jitter      touches that are under way together change places
    transfers   DMA, zero-copy and Hybrid-XT between near and middle
    distances   sampled pairs of virtual time and reuse distance
    books       what must balance after a run
    state       where every page is, counts and clocks
    recorded_moves  what a recording is told
    view        what an eviction or placement policy sees
    relay       how policies are called, and errors they raise

A page is in one tier only, unless the middle is a page cache. A miss brings it near, never through
the middle; a victim goes where the placement policy says. Dirty pages that leave for the far tier
are written, clean ones dropped.
"""
