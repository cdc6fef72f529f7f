"""Simulated memory: gpu/ has slots, a driver and a link; tiers/ has near, middle and far memory."""
