"""What the controller knows of the objects that it has seen. Each owns one answer, and none writes."""
