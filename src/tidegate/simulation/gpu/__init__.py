"""The simulated GPU: slots, the driver, the link, and the relay to policies."""
