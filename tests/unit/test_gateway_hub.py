"""The gateway in a box without a network: everything comes through the hub."""

from __future__ import annotations

import datetime
import ssl
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.fakes.gateway import RunningGateway, endpoint
from tests.fakes.hub import FakeHub
from tests.fakes.provider import FakeProvider


def where(provider: FakeProvider) -> tuple[str, int]:
    host, _, port = provider.url.partition("://")[2].rpartition(":")
    return host, int(port)


@pytest.fixture
def hub() -> Iterator[FakeHub]:
    made = FakeHub({})
    yield made
    made.close()


def test_calls_go_through_the_hub_on_kept_connections(hub: FakeHub) -> None:
    with FakeProvider("ok") as provider:
        hub.routes["model.example", 8080] = where(provider)
        with RunningGateway(endpoint("http://model.example:8080/v1"), hub=hub) as gateway:
            assert [gateway.post(prompt=f"q{n}").status_code for n in range(5)] == [200] * 5
            assert gateway.calls()[-1]["provider"] == "model.example"
        assert hub.dials == [("model.example", 8080)]


def test_every_listener_is_served(hub: FakeHub) -> None:
    with FakeProvider("ok") as provider:
        hub.routes["model.example", 80] = where(provider)
        with RunningGateway(endpoint("http://model.example/v1"), hub=hub) as gateway:
            second = hub.give_listener("work-2")
            url = f"http://127.0.0.1:{second}/v1/models"
            answer = gateway.http.get(url, headers={"Authorization": f"Bearer {gateway.key()}"})
            assert answer.status_code == 200
            with ThreadPoolExecutor(8) as pool:
                assert set(pool.map(lambda n: gateway.post(prompt=f"q{n}").status_code, range(40))) == {200}


@pytest.mark.parametrize(
    ("error", "said", "attempts"),
    [
        ({"error": "blocked", "detail": "no rule allows it"}, "host policy refuses model.example", 1),
        ({"error": "dns", "detail": "no such name"}, "does not resolve", 4),
        ({"error": "unreachable", "detail": "refused"}, "refused", 4),
    ],
)
def test_a_dial_that_fails_says_why(hub: FakeHub, error: dict[str, str], said: str, attempts: int) -> None:
    hub.routes["model.example", 80] = error
    with RunningGateway(endpoint("http://model.example/v1"), hub=hub) as gateway:
        response = gateway.post(prompt="hi")
        assert response.status_code == 502 and said in response.json()["error"]["message"]
        [call] = gateway.calls()
        assert (call["error"]["kind"], call["attempts"]) == ("upstream_unreachable", attempts)


def test_the_gateway_speaks_tls_itself_and_checks_the_certificate(hub: FakeHub, tmp_path: Path) -> None:
    context = make_certificate(tmp_path, "model.example")
    with FakeProvider("ok", tls=context) as provider:
        hub.routes["model.example", 443] = hub.routes["other.example", 443] = where(provider)
        trust = {"SSL_CERT_FILE": str(tmp_path / "cert.pem")}
        with RunningGateway(endpoint("https://model.example/v1"), hub=hub, env=trust) as gateway:
            assert gateway.ask("hi")["choices"][0]["message"]["content"] == "ok"
    with FakeProvider("ok", tls=context) as provider:
        other = FakeHub({("other.example", 443): where(provider)})
        with RunningGateway(endpoint("https://other.example/v1"), hub=other, env=trust) as gateway:
            response = gateway.post(prompt="hi")
            assert response.status_code == 502 and "certificate" in response.text
            assert gateway.calls()[0]["attempts"] == 1
        assert provider.requests == []
        other.close()


def test_a_gateway_without_its_hub_ends() -> None:
    hub = FakeHub({})
    with RunningGateway(endpoint("http://model.example/v1"), hub=hub) as gateway:
        hub.close()
        gateway._process.wait(5)
        assert gateway.stop() == 0


def make_certificate(folder: Path, name: str) -> ssl.SSLContext:
    """A self-signed certificate in cert.pem, and a server context that shows it."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .sign(key, hashes.SHA256())
    )
    (folder / "cert.pem").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    (folder / "key.pem").write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(folder / "cert.pem", folder / "key.pem")
    return context
