"""What a step of the compiled mechanism answers."""

from __future__ import annotations

# The driver: OK goes on; CUT ends this turn early and nothing is wrong; the others end the run.
OK, CUT, RAISED, NOT_RESIDENT = 0, 1, 2, 3

# ``rounds`` and ``play`` besides: the launch is done, more blocks are wanted, it is time to breathe
# (so that progress can be shown and Ctrl-C noticed), a page was touched that belongs to no object,
# the driver's turn is over, or the driver is idle and there is work for it.
DONE, MORE, BREATHE, STRAY, TURN_OVER, WORK_WAITS = 10, 11, 12, 13, 14, 15
