"""Plans of a program model, their schedules, and the code that carries them out."""
