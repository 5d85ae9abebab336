"""Encrypts a web push message for one browser (RFC 8291), and signs the request to its push service (RFC 8292).

The push service of a browser's maker carries the message and cannot read it.
"""

from __future__ import annotations

import base64
import json
import os
from pathlib import Path
from urllib.parse import urlsplit

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from legion.system import files

RECORD = 4096
MOST = RECORD - 103
"""Bytes of a message that fit into one record with its header, padding mark and tag."""
_TOKEN_SECONDS = 12 * 3600
_CURVE = ec.SECP256R1()


def encoded(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()


def decoded(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


class SenderKey:
    """The key by which push services know this Legion again; made once."""

    def __init__(self, path: Path) -> None:
        if not path.exists():
            made = ec.generate_private_key(_CURVE).private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            files.write_atomic(path, made.decode(), mode=0o600)
        key = serialization.load_pem_private_key(path.read_bytes(), password=None)
        assert isinstance(key, ec.EllipticCurvePrivateKey)
        self._key = key

    @property
    def public(self) -> str:
        return encoded(_point(self._key.public_key()))

    def authorization(self, endpoint: str, *, now: float, contact: str) -> str:
        place = urlsplit(endpoint)
        claims = {"aud": f"{place.scheme}://{place.netloc}", "exp": int(now) + _TOKEN_SECONDS, "sub": contact}
        parts = [json.dumps(part, separators=(",", ":")).encode() for part in ({"typ": "JWT", "alg": "ES256"}, claims)]
        signed = ".".join(encoded(part) for part in parts)
        r, s = decode_dss_signature(self._key.sign(signed.encode(), ec.ECDSA(hashes.SHA256())))
        return f"vapid t={signed}.{encoded(r.to_bytes(32, 'big') + s.to_bytes(32, 'big'))}, k={self.public}"


def encrypt(
    message: bytes, *, browser: str, secret: str, key: ec.EllipticCurvePrivateKey | None = None, salt: bytes = b""
) -> bytes:
    """The body of the request. `browser` and `secret` are p256dh and auth of its subscription."""
    receiver = decoded(browser)
    mine = key or ec.generate_private_key(_CURVE)
    salt = salt or os.urandom(16)
    public = _point(mine.public_key())
    shared = mine.exchange(ec.ECDH(), ec.EllipticCurvePublicKey.from_encoded_point(_CURVE, receiver))
    material = _derived(shared, decoded(secret), b"WebPush: info\0" + receiver + public, 32)
    content_key = _derived(material, salt, b"Content-Encoding: aes128gcm\0", 16)
    nonce = _derived(material, salt, b"Content-Encoding: nonce\0", 12)
    header = salt + RECORD.to_bytes(4, "big") + bytes([len(public)]) + public
    return header + AESGCM(content_key).encrypt(nonce, message[:MOST] + b"\x02", None)


def _derived(material: bytes, salt: bytes, info: bytes, length: int) -> bytes:
    return HKDF(algorithm=hashes.SHA256(), length=length, salt=salt, info=info).derive(material)


def _point(key: ec.EllipticCurvePublicKey) -> bytes:
    return key.public_bytes(serialization.Encoding.X962, serialization.PublicFormat.UncompressedPoint)
