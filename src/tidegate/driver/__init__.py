"""Into the driver: a policy's class as code for the place where the pages are.

    find.py      the policy that a person means
    emit.py      a policy → C for the kernel's verifier
    folder/      that with what it includes, a loader, hooks of a driver, and how to use it
    tape.py      a simulated run's calls of a policy, what it was shown, and its answers
    kernel.py    clang and the kernel: compile, verify, play
    check.py     play a tape to the kernel and compare every answer
    modprobe.py  settings of NVIDIA's stock driver that do what a policy does

docs/driver.md is the page for users.
"""
