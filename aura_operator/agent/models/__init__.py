"""The model port's one implementation: providers through pydantic-ai. Knows no tool server and no Kubernetes."""
