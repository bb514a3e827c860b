"""File systems of a fixed size, each in a file, by way of the kernel's loop devices. Needs root.

Called in the pod's process. A device frees itself when the last mount of it is gone (autoclear), so that a killed pod,
supervisor or server leaves none behind. One image is always one device: pods that mount it at the same time share it.
"""

import contextlib
import ctypes
import errno
import fcntl
import os

from fairlead.engines.local.linux import mount_syscalls, programs

MAKER = "mke2fs"
#: Below this the file system's own tables leave no room.
MIN_BYTES = 1024 * 1024
_BLOCK = 4096
_GET_FREE = 0x4C82
_CONFIGURE = 0x4C0A
_GET_STATUS = 0x4C05
_AUTOCLEAR = 4
_TRIES = 32
_MAKE_SECONDS = 120.0


class _LoopInfo(ctypes.Structure):
    _fields_ = (
        ("device", ctypes.c_uint64),
        ("inode", ctypes.c_uint64),
        ("rdevice", ctypes.c_uint64),
        ("offset", ctypes.c_uint64),
        ("sizelimit", ctypes.c_uint64),
        ("number", ctypes.c_uint32),
        ("encrypt_type", ctypes.c_uint32),
        ("encrypt_key_size", ctypes.c_uint32),
        ("flags", ctypes.c_uint32),
        ("file_name", ctypes.c_char * 64),
        ("crypt_name", ctypes.c_char * 64),
        ("encrypt_key", ctypes.c_char * 32),
        ("init", ctypes.c_uint64 * 2),
    )


class _LoopConfig(ctypes.Structure):
    _fields_ = (
        ("fd", ctypes.c_uint32),
        ("block_size", ctypes.c_uint32),
        ("info", _LoopInfo),
        ("reserved", ctypes.c_uint64 * 8),
    )


def are_usable() -> bool:
    """Whether this server can mount images on this machine."""
    return os.geteuid() == 0 and os.path.exists("/dev/loop-control") and programs.find(MAKER) is not None


def open_image(path: str, size: int, *, durable: bool) -> int:
    """The device of the image at `path`, made with `size` bytes when it is not there yet.

    Called while the host's mounts are still in use: a device holds its file, and with it the mount that it lies on.
    """
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    lock = os.open(f"{path}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not os.path.exists(path):
            _make(path, size, durable)
        device = _find(path)
        return device if device >= 0 else _attach(path)
    finally:
        os.close(lock)


def mount_device(device: int, what: str, mode: int) -> int:
    """The file system on an open device as a detached mount, which keeps the device from now on.

    `mode` is for a new one, known by the folder that its maker leaves in it; later it is its users' to change.
    """
    try:
        mounted = mount_syscalls.make_mount("ext4", {"source": _path_of(device)}, 0, what)
    finally:
        os.close(device)
    with contextlib.suppress(OSError):
        os.stat("lost+found", dir_fd=mounted)
        os.chmod(".", mode, dir_fd=mounted)
        os.rmdir("lost+found", dir_fd=mounted)
    return mounted


def _path_of(device: int) -> str:
    """By its number: the mounts among which it was opened may be gone, and with them the path that it had there."""
    number = os.fstat(device).st_rdev
    return f"/dev/{os.path.basename(os.readlink(f'/sys/dev/block/{os.major(number)}:{os.minor(number)}'))}"


def _make(path: str, size: int, durable: bool) -> None:
    """A new image under its name only when it is whole."""
    unfinished = f"{path}.new"
    file = os.open(unfinished, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    os.ftruncate(file, max(MIN_BYTES, -(-size // _BLOCK) * _BLOCK))
    os.close(file)
    journal = [] if durable else ["-O", "^has_journal"]
    options = ["-E", "lazy_itable_init=1,lazy_journal_init=1,nodiscard", "-m", "0"]
    command = [MAKER, "-q", "-F", "-t", "ext4", *journal, *options, unfinished]
    ended = programs.run(command, {"PATH": programs.PATH}, seconds=_MAKE_SECONDS)
    if ended.code != 0:
        raise OSError(errno.EIO, f"{MAKER}: {ended.output}", path)
    os.rename(unfinished, path)


def _find(path: str) -> int:
    """The device that has this image already, opened so that it stays; -1 when none has."""
    wanted = os.stat(path)
    for name in os.listdir("/sys/block"):
        try:
            with open(f"/sys/block/{name}/loop/backing_file") as file:
                if file.read().rstrip("\n") != path:
                    continue
            device = os.open(f"/dev/{name}", os.O_RDWR | os.O_CLOEXEC)
        except OSError:
            continue  # no loop device, or freed while we looked
        info = _LoopInfo()
        try:
            fcntl.ioctl(device, _GET_STATUS, info)
        except OSError:
            info.inode = 0
        if info.inode == wanted.st_ino:
            return device
        os.close(device)
    return -1


def _attach(path: str) -> int:
    control = os.open("/dev/loop-control", os.O_RDWR | os.O_CLOEXEC)
    image = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    try:
        for _ in range(_TRIES):
            number = fcntl.ioctl(control, _GET_FREE)
            device = os.open(f"/dev/loop{number}", os.O_RDWR | os.O_CLOEXEC)
            config = _LoopConfig(fd=image)
            config.info.flags = _AUTOCLEAR
            config.info.file_name = path.encode()[-63:]
            try:
                fcntl.ioctl(device, _CONFIGURE, config)
            except OSError as error:
                os.close(device)
                if error.errno != errno.EBUSY:
                    raise OSError(error.errno, error.strerror, f"/dev/loop{number}") from error
                continue  # another pod was faster
            return device
    finally:
        os.close(image)
        os.close(control)
    raise OSError(errno.EBUSY, "no loop device is free", path)
