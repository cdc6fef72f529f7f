"""What policies keep: ordered sets of regions and what is built on them."""
