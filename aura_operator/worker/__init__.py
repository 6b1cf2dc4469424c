"""The worker process: a Lease, claims, slots, and one runner for each task it owns."""
