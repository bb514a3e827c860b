"""The cluster's own certificate authority and what it signs; tokens and kubeconfigs for those who talk to its API.

Made anew at every start and gone with the cluster's folder: none of it is worth keeping.
"""

import datetime
import ipaddress
import json
import secrets
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from deploy.cluster.layout import DOMAIN, NODE, Layout

_LIFE = datetime.timedelta(days=3650)
#: who -> user name and groups, as the API server sees them
USERS = {
    "admin": ("admin", ("system:masters",)),
    "controller-manager": ("system:kube-controller-manager", ()),
    "scheduler": ("system:kube-scheduler", ()),
    "kubelet": (f"system:node:{NODE}", ("system:nodes",)),
    "proxy": ("system:kube-proxy", ()),
    "coredns": ("system:coredns", ()),
}


@dataclass(frozen=True)
class Authority:
    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey


def write_certificates(layout: Layout) -> None:
    folder = layout.path("certificates")
    # The authority's certificate may be read by all, as everyone with a kubeconfig has to; keys may not.
    folder.mkdir(mode=0o711)
    authority = make_authority()
    write_pair(folder, "ca", authority.certificate, authority.key)
    loopback = ["127.0.0.1", "localhost"]
    service = ["kubernetes", "kubernetes.default", "kubernetes.default.svc", f"kubernetes.default.svc.{DOMAIN}"]
    sign(folder, authority, "apiserver", [layout.address, str(layout.services[1]), *loopback, *service])
    sign(folder, authority, "kubelet", [layout.address, NODE])
    sign(folder, authority, "apiserver-kubelet-client", [], organization="system:masters")
    for name in ("kai-admission", "lws", "training-operator"):
        own = folder / name
        own.mkdir()
        sign(own, authority, "tls", loopback)
    # Signed with by the API server and the controller manager; every start begins with no service accounts at all.
    accounts = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    write_key(folder / "service-accounts.key", accounts)


def make_authority() -> Authority:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "fairlead-cluster")])
    built = start_certificate(name, name, key.public_key())
    built = built.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    return Authority(built.sign(key, hashes.SHA256()), key)


def start_certificate(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(minutes=5))
        .not_valid_after(now + _LIFE)
    )


def sign(folder: Path, authority: Authority, name: str, hosts: list[str], organization: str = "") -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    attributes = [x509.NameAttribute(NameOID.COMMON_NAME, name)]
    if organization:
        attributes.append(x509.NameAttribute(NameOID.ORGANIZATION_NAME, organization))
    built = start_certificate(x509.Name(attributes), authority.certificate.subject, key.public_key())
    usages = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
    built = built.add_extension(x509.ExtendedKeyUsage(usages), critical=False)
    if hosts:
        built = built.add_extension(x509.SubjectAlternativeName([render_host(host) for host in hosts]), critical=False)
    write_pair(folder, name, built.sign(authority.key, hashes.SHA256()), key)


def render_host(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def write_pair(folder: Path, name: str, certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> None:
    (folder / f"{name}.crt").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    write_key(folder / f"{name}.key", key)


def write_key(path: Path, key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey) -> None:
    path.touch(mode=0o600)
    form = serialization.PrivateFormat.TraditionalOpenSSL
    path.write_bytes(key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption()))


def write_users(layout: Layout) -> None:
    """One token and one kubeconfig for each; the administrator's is `kubeconfig`."""
    lines = []
    for who, (user, groups) in USERS.items():
        token = secrets.token_hex(16)
        lines.append(f'{token},{user},{user},"{",".join(groups)}"\n')
        path = layout.kubeconfig(who)
        path.touch(mode=0o600)
        path.write_text(render_kubeconfig(layout, token))
    tokens = layout.path("tokens.csv")
    tokens.touch(mode=0o600)
    tokens.write_text("".join(lines))


def render_kubeconfig(layout: Layout, token: str) -> str:
    authority = str(layout.path("certificates", "ca.crt"))
    return json.dumps(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "local", "cluster": {"server": layout.url, "certificate-authority": authority}}],
            "users": [{"name": "user", "user": {"token": token}}],
            "contexts": [{"name": "local", "context": {"cluster": "local", "user": "user"}}],
            "current-context": "local",
        },
        indent=2,
    )
