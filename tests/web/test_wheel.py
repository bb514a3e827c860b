"""A wheel has the page, with its compressed files."""

import shutil
import zipfile
from pathlib import Path

import pytest

from scripts import release
from tests.e2e.wheels import BUILD_TIME

pytestmark = pytest.mark.web

PAGE = "src/fairlead/web"


def test_the_wheel_carries_the_page(tmp_path: Path) -> None:
    release.copy_clone(tmp_path / "clone")
    # It is current, so the build does not make it again.
    shutil.copytree(release.ROOT / PAGE, tmp_path / "clone" / PAGE)
    release.build(tmp_path / "clone", tmp_path / "dist", BUILD_TIME)
    built = {str(path.relative_to(release.ROOT / "src")) for path in (release.ROOT / PAGE).rglob("*") if path.is_file()}
    with zipfile.ZipFile(tmp_path / "dist" / release.WHEEL) as wheel:
        packed = set(wheel.namelist())
    assert {"fairlead/web/index.html", "fairlead/web/index.html.br"} <= built <= packed
