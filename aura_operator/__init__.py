"""AURA operator: durable agent execution on Kubernetes."""

__version__ = "0.1.0"

__all__ = ["__version__"]
