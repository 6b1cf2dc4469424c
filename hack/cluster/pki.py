"""Certificates of one local cluster. Owns the authority and what it signs; knows no processes."""

from __future__ import annotations

import datetime
import ipaddress
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

VALID_FOR = datetime.timedelta(days=365)
SKEW = datetime.timedelta(minutes=5)


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyPair:
    """A certificate and its key, both PEM."""

    certificate: bytes
    key: bytes

    def write(self, certificate: Path, key: Path) -> None:
        certificate.write_bytes(self.certificate)
        write_private(key, self.key)


def write_private(path: Path, content: bytes) -> None:
    """Writes a file that only its owner may read, from the first byte on."""
    path.touch(mode=0o600)
    path.chmod(0o600)
    path.write_bytes(content)


def new_key() -> bytes:
    """A fresh P-256 key, PEM: it takes no time, where RSA takes a second per user."""
    return _pem(ec.generate_private_key(ec.SECP256R1()))


def new_authority(name: str) -> KeyPair:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    certificate = (
        _certificate(subject, subject, key.public_key())
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_key_usage(signs_certificates=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    return KeyPair(certificate=certificate.public_bytes(serialization.Encoding.PEM), key=_pem(key))


def sign_client(authority: KeyPair, user: str, groups: Iterable[str] = ()) -> KeyPair:
    """A client certificate as Kubernetes reads it: the common name is the user, each organisation a group."""
    attributes = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
    subject = x509.Name([*attributes, x509.NameAttribute(NameOID.COMMON_NAME, user)])
    return _sign(authority, subject, ExtendedKeyUsageOID.CLIENT_AUTH, [])


def sign_server(authority: KeyPair, name: str, *, hosts: Iterable[str]) -> KeyPair:
    """A server certificate for `hosts`: names or addresses."""
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    return _sign(authority, subject, ExtendedKeyUsageOID.SERVER_AUTH, [_host(host) for host in hosts])


def _sign(
    authority: KeyPair, subject: x509.Name, usage: x509.ObjectIdentifier, hosts: list[x509.GeneralName]
) -> KeyPair:
    issuer = x509.load_pem_x509_certificate(authority.certificate)
    issuer_key = serialization.load_pem_private_key(authority.key, password=None)
    assert isinstance(issuer_key, ec.EllipticCurvePrivateKey)
    key = ec.generate_private_key(ec.SECP256R1())
    builder = (
        _certificate(subject, issuer.subject, key.public_key())
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_key_usage(signs_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
        # Without it Python's strict verification (the default since 3.13) refuses the chain.
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key()), critical=False)
    )
    if hosts:
        builder = builder.add_extension(x509.SubjectAlternativeName(hosts), critical=False)
    certificate = builder.sign(issuer_key, hashes.SHA256())
    return KeyPair(certificate=certificate.public_bytes(serialization.Encoding.PEM), key=_pem(key))


def _certificate(
    subject: x509.Name, issuer: x509.Name, public_key: ec.EllipticCurvePublicKey
) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public_key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - SKEW)
        .not_valid_after(now + VALID_FOR)
    )


def _key_usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _host(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    # Not PKCS#8: the API server reads the public half of its service account key from this older form only.
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    )
