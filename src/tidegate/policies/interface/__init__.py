"""What policies and mechanisms know of each other: the policy API, visibility, the memory view,
events, compiling.
"""
