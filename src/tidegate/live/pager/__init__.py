"""The pager's side: the process that serves faults, its supervisor, and the engine that asks
policies.
"""
