"""The nine applications of GMT's Table 2, one module each."""
