"""This machine's GPUs as NVIDIA's management library lists and measures them; none if the library is not installed.

A few calls of its stable interface by ctypes. NVIDIA's own binding (nvidia-ml-py) declares all of it in 8,000 lines:
importing it took 0.27 s and 17 MB on a machine without a GPU, in every server.
"""

import ctypes
import ctypes.util
from typing import Any, NamedTuple

from fairlead.model.records.organization import GpuDevice

LIBRARY = "libnvidia-ml.so.1"
_SUCCESS = 0
_TEXT = 96
MEBIBYTE = 1024 * 1024


class _Memory(ctypes.Structure):
    _fields_ = (("total", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong))


class _Utilization(ctypes.Structure):
    _fields_ = (("gpu", ctypes.c_uint), ("memory", ctypes.c_uint))


class DeviceUse(NamedTuple):
    #: The share of the last second or less in which it computed.
    percent: int
    memory_bytes: int


def observe_devices(library_name: str = LIBRARY) -> tuple[GpuDevice, ...]:
    library = _open(library_name)
    if library is None:
        return ()
    try:
        return tuple(_device(library, index) for index in range(_count(library)))
    finally:
        library.nvmlShutdown()


class DeviceMeter:
    """How busy the GPUs are. The library stays open: opening it may take seconds if no program uses a GPU."""

    def __init__(self, library_name: str = LIBRARY) -> None:
        self._library = _open(library_name)

    def observe(self) -> dict[int, DeviceUse]:
        """By index; without the devices that do not tell, such as those that are divided by MIG."""
        if self._library is None:
            return {}
        uses = ((index, _use(self._library, index)) for index in range(_count(self._library)))
        return {index: use for index, use in uses if use is not None}


def _open(library_name: str) -> Any | None:
    try:
        library = ctypes.CDLL(library_name)
    except OSError:
        return None
    return library if library.nvmlInit_v2() == _SUCCESS else None


def _count(library: Any) -> int:
    count = ctypes.c_uint()
    return count.value if library.nvmlDeviceGetCount_v2(ctypes.byref(count)) == _SUCCESS else 0


def _handle(library: Any, index: int) -> ctypes.c_void_p | None:
    handle = ctypes.c_void_p()
    return handle if library.nvmlDeviceGetHandleByIndex_v2(index, ctypes.byref(handle)) == _SUCCESS else None


def _device(library: Any, index: int) -> GpuDevice:
    handle, memory = _handle(library, index), _Memory()
    if handle is None:
        return GpuDevice(index=index)
    name, uuid = ctypes.create_string_buffer(_TEXT), ctypes.create_string_buffer(_TEXT)
    library.nvmlDeviceGetName(handle, name, _TEXT)
    library.nvmlDeviceGetUUID(handle, uuid, _TEXT)
    library.nvmlDeviceGetMemoryInfo(handle, ctypes.byref(memory))
    return GpuDevice(index, uuid.value.decode(), name.value.decode(), memory.total // MEBIBYTE)


def _use(library: Any, index: int) -> DeviceUse | None:
    handle, memory, utilization = _handle(library, index), _Memory(), _Utilization()
    if handle is None or library.nvmlDeviceGetUtilizationRates(handle, ctypes.byref(utilization)) != _SUCCESS:
        return None
    library.nvmlDeviceGetMemoryInfo(handle, ctypes.byref(memory))
    return DeviceUse(utilization.gpu, memory.used)
