"""Programs whose times on real cards were published: what `tidegate validate` plays."""
