"""Starts and kills the product's real processes, sets agents and tasks up, and waits for what comes of it.

Tests, demo and benchmarks share it. It knows the product from outside: commands, logs, probes, objects of the API.
"""
