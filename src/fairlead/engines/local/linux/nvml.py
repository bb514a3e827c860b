"""This machine's GPUs as NVIDIA's management library lists them; none if the library is not installed.

Six calls of its stable interface by ctypes. NVIDIA's own binding (nvidia-ml-py) declares all of it in 8,000 lines:
importing it took 0.27 s and 17 MB on a machine without a GPU, in every server.
"""

import ctypes
import ctypes.util
from typing import Any

from fairlead.model.records.organization import GpuDevice

_SUCCESS = 0
_TEXT = 96
MEBIBYTE = 1024 * 1024


class _Memory(ctypes.Structure):
    _fields_ = (("total", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong))


def observe_devices(library_name: str = "libnvidia-ml.so.1") -> tuple[GpuDevice, ...]:
    try:
        library = ctypes.CDLL(library_name)
    except OSError:
        return ()
    if library.nvmlInit_v2() != _SUCCESS:
        return ()
    try:
        count = ctypes.c_uint()
        if library.nvmlDeviceGetCount_v2(ctypes.byref(count)) != _SUCCESS:
            return ()
        return tuple(_device(library, index) for index in range(count.value))
    finally:
        library.nvmlShutdown()


def _device(library: Any, index: int) -> GpuDevice:
    handle, memory = ctypes.c_void_p(), _Memory()
    if library.nvmlDeviceGetHandleByIndex_v2(index, ctypes.byref(handle)) != _SUCCESS:
        return GpuDevice(index=index)
    name, uuid = ctypes.create_string_buffer(_TEXT), ctypes.create_string_buffer(_TEXT)
    library.nvmlDeviceGetName(handle, name, _TEXT)
    library.nvmlDeviceGetUUID(handle, uuid, _TEXT)
    library.nvmlDeviceGetMemoryInfo(handle, ctypes.byref(memory))
    return GpuDevice(index, uuid.value.decode(), name.value.decode(), memory.total // MEBIBYTE)
