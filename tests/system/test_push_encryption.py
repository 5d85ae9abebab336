"""Web push: the example of RFC 8291 byte for byte, and a signature that the public key confirms."""

from __future__ import annotations

import json
from pathlib import Path

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature

from legion.system.push_encryption import MOST, SenderKey, decoded, encoded, encrypt

# Appendix A of the RFC.
BROWSER = "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4"
SECRET = "BTBZMqHH6r4Tts7J_aSIgg"
SENDER = "yfWPiYE-n46HLnH0KqZOF1fJJU3MYrct3AELtAQ-oRw"
SALT = "DGv6ra1nlYgDCS1FRnbzlw"
TEXT = b"When I grow up, I want to be a watermelon"
BODY = (
    "DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl7A_yl95bQpu6cVPTpK4Mqgkf"
    "1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj_Qulcy4a-fN"
)


def test_the_example_of_the_standard_is_reproduced():
    key = ec.derive_private_key(int.from_bytes(decoded(SENDER), "big"), ec.SECP256R1())
    assert encoded(encrypt(TEXT, browser=BROWSER, secret=SECRET, key=key, salt=decoded(SALT))) == BODY


def test_a_long_message_is_cut_to_one_record():
    assert len(encrypt(b"x" * 9000, browser=BROWSER, secret=SECRET)) == 4096
    assert len(encrypt(b"x" * MOST, browser=BROWSER, secret=SECRET)) == 4096


def test_the_request_is_signed_with_a_key_that_is_made_once(tmp_path: Path):
    key = SenderKey(tmp_path / "web" / "push.pem")
    assert SenderKey(tmp_path / "web" / "push.pem").public == key.public
    assert (tmp_path / "web" / "push.pem").stat().st_mode & 0o777 == 0o600
    header = key.authorization("https://push.example:8443/x/y", now=1000.0, contact="mailto:ada@example.org")
    token, public = header.removeprefix("vapid t=").split(", k=")
    assert public == key.public
    signed, _, signature = token.rpartition(".")
    assert json.loads(decoded(signed.partition(".")[2])) == {
        "aud": "https://push.example:8443",
        "exp": 1000 + 12 * 3600,
        "sub": "mailto:ada@example.org",
    }
    raw = decoded(signature)
    pair = encode_dss_signature(int.from_bytes(raw[:32], "big"), int.from_bytes(raw[32:], "big"))
    ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), decoded(public)).verify(
        pair, signed.encode(), ec.ECDSA(hashes.SHA256())
    )
