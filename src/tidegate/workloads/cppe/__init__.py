"""The 23 applications of CPPE's Table II, one module each."""
