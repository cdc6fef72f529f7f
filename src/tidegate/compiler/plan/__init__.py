"""From a program model to a plan, a schedule and the code that carries it out."""
