"""The tools port's one implementation: servers that speak the Model Context Protocol. Knows no model."""
