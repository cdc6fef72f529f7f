"""The fourteen applications of ObservUVM's Table II, one module each."""
