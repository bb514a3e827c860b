"""Network devices by the kernel's own protocol (rtnetlink): bridges, veth pairs, addresses, routes.

Loaded by supervisors, which join their pod's namespace to the bridge within a millisecond where `ip` as a program
would take several each. Every request waits for the kernel's word and raises OSError with the device's name.
"""

import contextlib
import os
import socket
import struct

_HEADER = struct.Struct("=IHHII")
_LINK = struct.Struct("=BxHiII")
_ADDRESS = struct.Struct("=BBBBI")
_ROUTE = struct.Struct("=BBBBBBBBI")
_ATTRIBUTE = struct.Struct("=HH")

_NEWLINK, _DELLINK, _NEWADDR, _NEWROUTE = 16, 17, 20, 24
_ERROR = 2
_REQUEST, _ACK, _CREATE, _EXCL = 0x1, 0x4, 0x400, 0x200
_IFF_UP = 1
_IFLA_ADDRESS, _IFLA_IFNAME, _IFLA_MASTER, _IFLA_LINKINFO, _IFLA_NET_NS_FD = 1, 3, 10, 18, 28
#: The first byte of locally administered hardware addresses.
_LOCAL_UNICAST = b"\x02"
_INFO_KIND, _INFO_DATA, _VETH_PEER = 1, 2, 1
_IFA_ADDRESS, _IFA_LOCAL = 1, 2
_RTA_OIF, _RTA_GATEWAY = 4, 5
_MAIN_TABLE, _PROTOCOL_STATIC, _UNICAST = 254, 4, 1


class Links:
    """A conversation with the kernel about the devices of the network namespace in which it was begun."""

    def __init__(self) -> None:
        self._socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, 0)
        self._number = 0

    def __enter__(self) -> "Links":
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def add_bridge(self, name: str) -> None:
        """A bridge with an address of its own: it would else change with its cables, and pods speak to the old one."""
        own = _attribute(_IFLA_ADDRESS, _LOCAL_UNICAST + os.urandom(5))
        info = _attribute(_IFLA_LINKINFO, _attribute(_INFO_KIND, b"bridge"))
        self._ask(_NEWLINK, _link() + _name(name) + own + info, name, _CREATE | _EXCL)

    def add_pair(self, name: str, peer: str, namespace: int, bridge: str) -> None:
        """A cable from the bridge into a namespace: `name` here, on the bridge and up; `peer` there."""
        inside = _link() + _name(peer) + _attribute(_IFLA_NET_NS_FD, struct.pack("=I", namespace))
        info = _attribute(_INFO_KIND, b"veth") + _attribute(_INFO_DATA, _attribute(_VETH_PEER, inside))
        master = _attribute(_IFLA_MASTER, struct.pack("=I", socket.if_nametoindex(bridge)))
        body = _link(up=True) + _name(name) + master + _attribute(_IFLA_LINKINFO, info)
        self._ask(_NEWLINK, body, name, _CREATE | _EXCL)

    def remove(self, name: str) -> None:
        """Remove a device; with a veth its other end goes too. A missing one is not an error."""
        with contextlib.suppress(FileNotFoundError, OSError):
            index = socket.if_nametoindex(name)
            self._ask(_DELLINK, _link(index), name)

    def set_up(self, index: int, name: str) -> None:
        self._ask(_NEWLINK, _link(index, up=True), name)

    def add_address(self, index: int, name: str, address: str, prefix: int) -> None:
        packed = socket.inet_aton(address)
        body = _ADDRESS.pack(socket.AF_INET, prefix, 0, 0, index)
        body += _attribute(_IFA_LOCAL, packed) + _attribute(_IFA_ADDRESS, packed)
        self._ask(_NEWADDR, body, name, _CREATE | _EXCL)

    def add_default_route(self, index: int, name: str, gateway: str) -> None:
        body = _ROUTE.pack(socket.AF_INET, 0, 0, 0, _MAIN_TABLE, _PROTOCOL_STATIC, 0, _UNICAST, 0)
        body += _attribute(_RTA_GATEWAY, socket.inet_aton(gateway))
        body += _attribute(_RTA_OIF, struct.pack("=I", index))
        self._ask(_NEWROUTE, body, name, _CREATE | _EXCL)

    def _ask(self, kind: int, body: bytes, subject: str, flags: int = 0) -> None:
        self._number += 1
        head = _HEADER.pack(_HEADER.size + len(body), kind, flags | _REQUEST | _ACK, self._number, 0)
        self._socket.send(head + body)
        while True:
            answer = self._socket.recv(65_536)
            _, kind_of_answer, _, number, _ = _HEADER.unpack_from(answer)
            if kind_of_answer == _ERROR and number == self._number:
                (code,) = struct.unpack_from("=i", answer, _HEADER.size)
                if code:
                    raise OSError(-code, os.strerror(-code), subject)
                return


def _link(index: int = 0, *, up: bool = False) -> bytes:
    flags = _IFF_UP if up else 0
    return _LINK.pack(socket.AF_UNSPEC, 0, index, flags, flags)


def _name(name: str) -> bytes:
    return _attribute(_IFLA_IFNAME, name.encode() + b"\0")


def _attribute(kind: int, value: bytes) -> bytes:
    length = _ATTRIBUTE.size + len(value)
    return _ATTRIBUTE.pack(length, kind) + value + b"\0" * (-length % 4)
