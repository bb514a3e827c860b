"""What contract tests share: a plain local engine."""

import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from fairlead.engines.local.configuration import load_identity
from fairlead.engines.local.engine import LocalEngine
from fairlead.engines.local.settings import LocalSettings
from tests.contract.engine_harness import clock, myself


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "data"


@pytest.fixture
def settings(data: Path) -> LocalSettings:
    return LocalSettings(data_dir=str(data), owner=load_identity(myself()))


@pytest.fixture
def make(settings: LocalSettings) -> Callable[[], LocalEngine]:
    return lambda: LocalEngine(settings, clock)


@pytest.fixture
def port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        number: int = free.getsockname()[1]
        return number
