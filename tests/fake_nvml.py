"""NVIDIA's management library for a machine without GPUs: a real shared library, so that its calls are those of NVML.

A file has a line for each device: how busy it is in percent, or `-` if it does not tell, as with MIG.
"""

import os
import subprocess
from pathlib import Path

GIBIBYTE = 1 << 30
_SOURCE = r"""
#include <stdio.h>
#include <string.h>

#define NOT_SUPPORTED 3
typedef struct { unsigned long long total, free, used; } memory_t;
typedef struct { unsigned int gpu, memory; } utilization_t;

/* The line of a device; how many there are if it has none. */
static unsigned int read_line(long device, char *line) {
    FILE *file = fopen(DEVICES, "r");
    unsigned int count = 0;
    while (file && fgets(line, 32, file)) {
        if (count++ == device) break;
    }
    if (file) fclose(file);
    return count;
}

int nvmlInit_v2(void) { return 0; }
int nvmlShutdown(void) { return 0; }

int nvmlDeviceGetCount_v2(unsigned int *count) {
    char line[32];
    *count = read_line(-1, line);
    return 0;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned int index, void **handle) {
    *handle = (void *)(long)(index + 1);
    return 0;
}

int nvmlDeviceGetName(void *handle, char *name, unsigned int length) {
    snprintf(name, length, "NVIDIA Imaginary");
    return 0;
}

int nvmlDeviceGetUUID(void *handle, char *uuid, unsigned int length) {
    snprintf(uuid, length, "GPU-%ld", (long)handle - 1);
    return 0;
}

int nvmlDeviceGetMemoryInfo(void *handle, memory_t *memory) {
    memory->total = 16ULL << 30;
    memory->used = (long)handle * (1ULL << 30);
    memory->free = memory->total - memory->used;
    return 0;
}

int nvmlDeviceGetUtilizationRates(void *handle, utilization_t *utilization) {
    char line[32];
    read_line((long)handle - 1, line);
    return sscanf(line, "%u", &utilization->gpu) == 1 ? 0 : NOT_SUPPORTED;
}
"""


class FakeNvml:
    def __init__(self, folder: Path, *percents: str) -> None:
        folder.mkdir(exist_ok=True)
        self.library = folder / "libnvidia-ml.so.1"
        self._devices = folder / "devices"
        self.set(*percents)
        command = [
            "gcc",
            "-shared",
            "-fPIC",
            f'-DDEVICES="{self._devices}"',
            "-x",
            "c",
            "-",
            "-o",
            str(self.library),
        ]
        subprocess.run(command, input=_SOURCE, text=True, check=True)

    def set(self, *percents: str) -> None:
        written = self._devices.with_suffix(".new")
        written.write_text("".join(f"{percent}\n" for percent in percents))
        written.replace(self._devices)

    @property
    def environment(self) -> dict[str, str]:
        """The variables of a program that finds this library."""
        return {**os.environ, "LD_LIBRARY_PATH": str(self.library.parent)}
