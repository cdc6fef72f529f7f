"""For all tests: hypothesis sets no deadlines, which on a busy machine say nothing of the code.

And Ctrl-C is heard: a shell that starts tests in the background has them, and all that they start,
ignore it.
"""

from __future__ import annotations

import signal
import threading

from hypothesis import settings

settings.register_profile("tidegate", deadline=None)
settings.load_profile("tidegate")

if (
    signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    and threading.current_thread() is threading.main_thread()
):
    signal.signal(signal.SIGINT, signal.default_int_handler)
