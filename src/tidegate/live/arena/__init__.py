"""The program's side: the arena, its arguments and its connection to the supervisor."""
