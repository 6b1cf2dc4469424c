"""The rules of durable execution, pure: no I/O, no clock, no randomness, no Kubernetes. Time and ids are arguments."""
