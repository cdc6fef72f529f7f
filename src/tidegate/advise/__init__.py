"""Advice for programs that outgrow their memory.

    find_subject ──▶ Subject ──▶ advise ──▶ Advice ──▶ words · data · page · emit

Candidates are simulated by experiments; a plan by tensor is a placement policy like any other.
"""

from tidegate.advise.advice import Advice, advise
from tidegate.advise.simulate import Simulator
from tidegate.advise.subject import Subject, find_subject

__all__ = ["Advice", "Simulator", "Subject", "advise", "find_subject"]
