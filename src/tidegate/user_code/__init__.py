"""Which user code a run depends on.

origins      whose code something is: Tidegate's, a library's or the user's
files        users' Python files, loaded by path
fingerprint  a hash of code as it is in memory, with all that it depends on
"""
