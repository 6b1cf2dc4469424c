"""The Kubernetes API as the store: a small client, and every write that changes ownership or the journal."""
