"""Policies: what leaves (eviction), what comes early (prefetch), where objects live (placement).

A policy sees only what it declares (``sees``) and acts only through the mechanism's verbs, so the
same object runs on the simulated GPU and on live memory. ``tidegate.policy`` has the names that an
author needs, ``registries`` has the policies by name.
"""
