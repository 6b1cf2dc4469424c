"""Development tools of this checkout: the local cluster and what the Makefile runs. Never imported by the product."""
