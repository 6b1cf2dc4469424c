"""The demo: an incident in which everything dies but the task. `python -m hack.demo`; never imported by the product."""
