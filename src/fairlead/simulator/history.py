"""Reads what was submitted and how long it ran: our own export, Slurm's accounting, and two public traces.

Each reader takes the text of a file and raises HistoryError with the line that is wrong.
"""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime

import msgspec

#: GPUs of one pod at most, if the trace does not say how a job was split.
_PER_POD = 8


class HistoryError(ValueError):
    """A file that is not in the form it is said to be in."""


class Arrival(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """One workload of a history. This is also a line of our own export."""

    id: str
    #: Seconds, from any common origin.
    at: float
    project: str
    #: Seconds that it ran, or would have run undisturbed.
    duration: float
    #: Whole GPUs of each pod, or a part of one.
    gpus: float = 0
    pods: int = 1
    cpu_milli: int = 0
    memory_bytes: int = 0
    priority: int = 50
    preemptible: bool = True


def read_history(text: str, form: str) -> tuple[Arrival, ...]:
    """The arrivals in the order of their times."""
    reader = READERS.get(form)
    if reader is None:
        raise HistoryError(f"There is no format '{form}'; the formats are {', '.join(READERS)}.")
    arrivals = sorted(reader(text), key=lambda arrival: (arrival.at, arrival.id))
    if not arrivals:
        raise HistoryError("The file has no submissions.")
    for arrival in arrivals:
        if not (0 <= arrival.duration < math.inf and arrival.gpus >= 0 and arrival.pods >= 1):
            raise HistoryError(f"{arrival.id}: the duration and GPUs must not be negative, and pods at least 1.")
    return tuple(arrivals)


def _read_own(text: str) -> Iterator[Arrival]:
    """One JSON object per line."""
    for number, line in enumerate(text.splitlines(), start=1):
        if line.strip():
            try:
                yield msgspec.json.decode(line, type=Arrival)
            except msgspec.DecodeError as error:
                raise HistoryError(f"Line {number}: {error}.") from None


def _rows(text: str, delimiter: str, needed: tuple[str, ...]) -> Iterator[tuple[int, dict[str, str]]]:
    reader = csv.DictReader(io.StringIO(text), delimiter=delimiter)
    missing = [name for name in needed if name not in (reader.fieldnames or ())]
    if missing:
        raise HistoryError(f"Line 1: the columns {', '.join(missing)} are missing.")
    for number, row in enumerate(reader, start=2):
        if any(row.values()):
            yield number, {name: value or "" for name, value in row.items() if name}


def _split(gpus: int) -> tuple[int, int]:
    """GPUs of a job as GPUs per pod and pods."""
    if gpus <= _PER_POD:
        return gpus, 1
    return (_PER_POD, gpus // _PER_POD) if gpus % _PER_POD == 0 else (1, gpus)


def _read_philly(text: str) -> Iterator[Arrival]:
    """Microsoft's Philly trace as reduced by Pollux' authors: timestamp, duration, num_gpus, cluster."""
    for number, row in _rows(text, ",", ("timestamp", "duration", "num_gpus", "cluster")):
        try:
            gpus, pods = _split(_whole(row, "num_gpus"))
            yield Arrival(
                id=f"job-{number:06d}",
                at=_moment(row, "timestamp"),
                project=row["cluster"],
                duration=_number(row, "duration"),
                gpus=gpus,
                pods=pods,
            )
        except ValueError as error:
            raise HistoryError(f"Line {number}: {error}.") from None


def _read_openb(text: str) -> Iterator[Arrival]:
    """Alibaba's openb trace: pods with creation and deletion times; portions of GPUs in thousandths."""
    needed = ("name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli", "creation_time", "deletion_time")
    for number, row in _rows(text, ",", needed):
        try:
            devices, portion = _whole(row, "num_gpu"), _whole(row, "gpu_milli", "0") / 1000
            began = _number(row, "creation_time")
            yield Arrival(
                id=row["name"],
                at=began,
                project=row.get("qos") or "default",
                duration=max(1.0, _number(row, "deletion_time", str(began)) - began),
                gpus=portion if devices == 1 and portion < 1 else devices,
                cpu_milli=_whole(row, "cpu_milli"),
                memory_bytes=_whole(row, "memory_mib") << 20,
            )
        except ValueError as error:
            raise HistoryError(f"Line {number}: {error}.") from None


def _read_sacct(text: str) -> Iterator[Arrival]:
    """Output of `sacct -P -X --format=JobID,Account,Submit,ElapsedRaw,NNodes,ReqTRES`."""
    for number, row in _rows(text, "|", ("JobID", "Account", "Submit", "ElapsedRaw", "NNodes", "ReqTRES")):
        try:
            wanted = dict(part.split("=", 1) for part in row["ReqTRES"].split(",") if "=" in part)
            pods = max(1, _whole(row, "NNodes"))
            gpus = _whole(wanted, "gres/gpu", "0")
            duration = _number(row, "ElapsedRaw")
            if duration > 0:
                yield Arrival(
                    id=row["JobID"],
                    at=_moment(row, "Submit"),
                    project=row["Account"] or "default",
                    duration=duration,
                    gpus=gpus // pods,
                    pods=pods,
                    cpu_milli=1000 * _whole(wanted, "cpu", "0") // pods,
                    memory_bytes=_bytes(wanted.get("mem", "0")) // pods,
                )
        except ValueError as error:
            raise HistoryError(f"Line {number}: {error}.") from None


def _whole(row: Mapping[str, str], column: str, missing: str = "") -> int:
    text = row.get(column) or missing
    try:
        return int(text)
    except ValueError:
        raise ValueError(f"{column} is '{text}', not a whole number") from None


def _number(row: Mapping[str, str], column: str, missing: str = "") -> float:
    text = row.get(column) or missing
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"{column} is '{text}', not a number") from None


def _moment(row: Mapping[str, str], column: str) -> float:
    try:
        moment = datetime.fromisoformat(row[column])
    except ValueError:
        raise ValueError(f"{column} is '{row[column]}', not a time such as 2026-10-01T08:00:00") from None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def _bytes(text: str) -> int:
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([KMGT]?)", text)
    if match is None:
        raise ValueError(f"'{text}' is not an amount of memory")
    return int(float(match[1]) * 1024 ** " KMGT".index(match[2] or "M"))


READERS: dict[str, Callable[[str], Iterator[Arrival]]] = {
    "fairlead": _read_own,
    "sacct": _read_sacct,
    "philly": _read_philly,
    "openb": _read_openb,
}
