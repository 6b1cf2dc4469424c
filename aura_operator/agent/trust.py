"""Whom this process trusts over HTTPS. Owns the one set of authorities that all its HTTP clients share."""

from __future__ import annotations

import ssl
from functools import cache

import httpx2


@cache
def trust() -> ssl.SSLContext:
    """The system's authorities, or those of SSL_CERT_FILE and SSL_CERT_DIR. Reading them takes 20 ms and 1 MB."""
    return httpx2.create_ssl_context()
