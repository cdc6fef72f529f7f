"""Advice for programs that outgrow their memory.

    find_subject ──▶ Subject ──▶ advise ──▶ Advice ──▶ words · data · page · emit

Candidates are simulated by experiments; a plan by tensor is a placement policy like any other.
"""

from tidegate.advice.advice import Advice, advise, advise_on
from tidegate.advice.simulate import Simulator
from tidegate.advice.subject import Subject, find_subject

__all__ = ["Advice", "Simulator", "Subject", "advise", "advise_on", "find_subject"]
