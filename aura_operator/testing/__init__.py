"""What tests of this project, and of agents that run on it, are made with: real servers that misbehave on demand.

Shipped, since people who write agents need them too. Production code never imports this package.
"""
