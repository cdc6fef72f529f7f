"""LEU (least expected use): the policy, its variant that sees samples, and what only they need."""
