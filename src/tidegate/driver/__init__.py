"""Into the driver: a policy's class as code for the place where the pages are.

    emit.py      a policy → files: C for the kernel's verifier, what it needs, and how to load it
    tape.py      a simulated run's calls of a policy, what it was shown, and its answers
    kernel.py    clang and the kernel: compile, verify, play
    check.py     play a tape to the kernel and compare every answer
    modprobe.py  settings of NVIDIA's stock driver that do what a policy does

docs/driver.md is the page for users.
"""
