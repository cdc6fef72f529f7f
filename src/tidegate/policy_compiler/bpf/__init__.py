"""A policy as C for the kernel's verifier: the class is the one source here, too.

    emitter.py     a policy after start() → a C file; parts of a policy are emitted with it
    state.py       attributes, as start() left them → declarations
    functions.py   one method: statements and expressions
    values.py      what an expression is while it is emitted: its text and its kind
    policy.h       structures, look-ups and requests, over zeroed arrays

docs/driver.md says what is emitted and what is refused.
"""
