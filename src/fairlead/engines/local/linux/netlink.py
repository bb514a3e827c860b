"""Network devices by the kernel's own protocol (rtnetlink): veth pairs, addresses, routes, neighbours.

Loaded by supervisors, which connect their pod's namespace to this machine within a millisecond; the program `ip` takes
several for each step. Every request waits for the kernel's answer and raises OSError with the device's name.
"""

import contextlib
import os
import socket
import struct

_HEADER = struct.Struct("=IHHII")
_LINK = struct.Struct("=BxHiII")
_ADDRESS = struct.Struct("=BBBBI")
_ROUTE = struct.Struct("=BBBBBBBBI")
_NEIGHBOUR = struct.Struct("=BxHiHBB")
_ATTRIBUTE = struct.Struct("=HH")

_NEWLINK, _DELLINK, _NEWADDR, _DELADDR, _NEWROUTE, _NEWNEIGH = 16, 17, 20, 21, 24, 28
_ERROR = 2
_REQUEST, _ACK, _CREATE, _EXCL = 0x1, 0x4, 0x400, 0x200
_IFF_UP = 1
_IFLA_ADDRESS, _IFLA_IFNAME, _IFLA_LINKINFO, _IFLA_GROUP, _IFLA_NET_NS_FD = 1, 3, 18, 27, 28
#: The hardware address of this machine's end of every pair. Each pair is a network of its own, so one is enough.
_OUR_END = b"\xee" * 6
_INFO_KIND, _INFO_DATA, _VETH_PEER = 1, 2, 1
_IFA_ADDRESS, _IFA_LOCAL = 1, 2
_RTA_DST, _RTA_OIF, _RTA_GATEWAY, _RTA_PREFSRC = 1, 4, 5, 7
_MAIN_TABLE, _PROTOCOL_STATIC, _UNICAST = 254, 4, 1
_SCOPE_UNIVERSE, _SCOPE_LINK = 0, 253
_ONLINK = 4
_NDA_DST, _NDA_LLADDR, _PERMANENT = 1, 2, 0x80
_WHOLE = 32


class Links:
    """A conversation with the kernel about the devices of the network namespace in which it was begun."""

    def __init__(self) -> None:
        self._socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, 0)
        self._number = 0

    def __enter__(self) -> "Links":
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def add_pair(self, name: str, peer: str, namespace: int, group: int) -> None:
        """A veth pair from here into a namespace: `name` here, up and in a device group; `peer` there."""
        inside = _link() + _name(peer) + _attribute(_IFLA_NET_NS_FD, struct.pack("=I", namespace))
        info = _attribute(_INFO_KIND, b"veth") + _attribute(_INFO_DATA, _attribute(_VETH_PEER, inside))
        own = _attribute(_IFLA_ADDRESS, _OUR_END) + _attribute(_IFLA_GROUP, struct.pack("=I", group))
        body = _link(up=True) + _name(name) + own + _attribute(_IFLA_LINKINFO, info)
        self._ask(_NEWLINK, body, name, _CREATE | _EXCL)

    def remove(self, name: str) -> None:
        """Remove a device; with a veth its other end goes too. A missing one is not an error."""
        with contextlib.suppress(FileNotFoundError, OSError):
            index = socket.if_nametoindex(name)
            self._ask(_DELLINK, _link(index), name)

    def set_up(self, index: int, name: str) -> None:
        self._ask(_NEWLINK, _link(index, up=True), name)

    def add_address(self, index: int, name: str, address: str) -> None:
        """Give a device an address that belongs to no network of addresses."""
        self._ask(_NEWADDR, _address(index, address), name, _CREATE | _EXCL)

    def remove_address(self, index: int, name: str, address: str) -> None:
        """A missing one is not an error."""
        with contextlib.suppress(OSError):
            self._ask(_DELADDR, _address(index, address), name)

    def add_route_to(self, address: str, index: int, name: str, source: str) -> None:
        """Reach one address directly through a device, from `source` if a program does not choose."""
        body = _ROUTE.pack(socket.AF_INET, _WHOLE, 0, 0, _MAIN_TABLE, _PROTOCOL_STATIC, _SCOPE_LINK, _UNICAST, 0)
        body += _attribute(_RTA_DST, socket.inet_aton(address)) + _attribute(_RTA_PREFSRC, socket.inet_aton(source))
        self._ask(_NEWROUTE, body + _attribute(_RTA_OIF, struct.pack("=I", index)), name, _CREATE | _EXCL)

    def add_default_route(self, index: int, name: str, gateway: str) -> None:
        """Send everything to the other end of a pair, whose hardware address is known: nobody has to be asked."""
        packed = socket.inet_aton(gateway)
        neighbour = _NEIGHBOUR.pack(socket.AF_INET, 0, index, _PERMANENT, 0, 0)
        neighbour += _attribute(_NDA_DST, packed) + _attribute(_NDA_LLADDR, _OUR_END)
        self._ask(_NEWNEIGH, neighbour, name, _CREATE | _EXCL)
        body = _ROUTE.pack(socket.AF_INET, 0, 0, 0, _MAIN_TABLE, _PROTOCOL_STATIC, _SCOPE_UNIVERSE, _UNICAST, _ONLINK)
        body += _attribute(_RTA_GATEWAY, packed) + _attribute(_RTA_OIF, struct.pack("=I", index))
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


def _address(index: int, address: str) -> bytes:
    packed = socket.inet_aton(address)
    body = _ADDRESS.pack(socket.AF_INET, _WHOLE, 0, 0, index)
    return body + _attribute(_IFA_LOCAL, packed) + _attribute(_IFA_ADDRESS, packed)


def _name(name: str) -> bytes:
    return _attribute(_IFLA_IFNAME, name.encode() + b"\0")


def _attribute(kind: int, value: bytes) -> bytes:
    length = _ATTRIBUTE.size + len(value)
    return _ATTRIBUTE.pack(length, kind) + value + b"\0" * (-length % 4)
