"""A certificate authority of the data folder's own, and the certificate that it issues for one address.

A browser that trusts the authority treats the page as secure. The key of the authority never leaves the folder.
"""

from __future__ import annotations

import datetime
import ipaddress
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from legion.system import files

_AUTHORITY_DAYS = 3650
_DAYS = 397
"""Browsers refuse certificates that are valid for longer."""
_RENEW_DAYS = 30


@dataclass(frozen=True, kw_only=True)
class Certificate:
    chain: Path
    key: Path
    fingerprint: str
    """Of the authority."""

    @classmethod
    def of(cls, folder: Path, host: str) -> Certificate:
        """The certificate for this address: the stored one, or a new one."""
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        authority, authority_key = _authority(folder)
        name = "".join(letter if letter.isalnum() else "-" for letter in host)
        chain, key = folder / f"{name}.pem", folder / f"{name}.key"
        if not _is_good(chain, authority) or not key.exists():
            _issue(host, authority, authority_key, chain, key)
        digest = authority.fingerprint(hashes.SHA256()).hex(":").upper()
        return cls(chain=chain, key=key, fingerprint=digest)


def _authority(folder: Path) -> tuple[x509.Certificate, ec.EllipticCurvePrivateKey]:
    path, key_path = folder / "authority.pem", folder / "authority.key"
    if path.exists() and key_path.exists():
        key = serialization.load_pem_private_key(key_path.read_bytes(), None)
        assert isinstance(key, ec.EllipticCurvePrivateKey)
        return x509.load_pem_x509_certificate(path.read_bytes()), key
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Legion of this machine")])
    made = (
        _builder(name, name, key.public_key(), _AUTHORITY_DAYS)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs=True), critical=True)
        .sign(key, hashes.SHA256())
    )
    _write_key(key_path, key)
    files.write_atomic(path, made.public_bytes(serialization.Encoding.PEM).decode())
    return made, key


def _issue(
    host: str, authority: x509.Certificate, authority_key: ec.EllipticCurvePrivateKey, chain: Path, key_path: Path
) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, host[:60])])
    made = (
        _builder(name, authority.subject, key.public_key(), _DAYS)
        .add_extension(x509.SubjectAlternativeName([_name_of(host)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .sign(authority_key, hashes.SHA256())
    )
    _write_key(key_path, key)
    pem = serialization.Encoding.PEM
    files.write_atomic(chain, (made.public_bytes(pem) + authority.public_bytes(pem)).decode())


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, days: int
) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=days))
    )


def _usage(*, signs: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs,
        key_cert_sign=signs,
        crl_sign=signs,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _name_of(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _is_good(chain: Path, authority: x509.Certificate) -> bool:
    try:
        known = x509.load_pem_x509_certificate(chain.read_bytes())
        known.verify_directly_issued_by(authority)
    except (OSError, ValueError, TypeError):
        return False
    left = known.not_valid_after_utc - datetime.datetime.now(datetime.UTC)
    return left > datetime.timedelta(days=_RENEW_DAYS)


def _write_key(path: Path, key: ec.EllipticCurvePrivateKey) -> None:
    pem = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    files.write_atomic(path, pem)
