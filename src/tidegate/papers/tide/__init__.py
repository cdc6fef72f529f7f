"""Our own claims about the system ``tide``."""
