"""What a pod sends is unpacked below the target and nowhere else."""

import io
import tarfile
from pathlib import Path

import pytest

from fairlead.cli.pods.cp import Place, explain_failure, unpack


def archive_of(*members: tuple[str, str | None], link: str = "") -> io.BytesIO:
    """An archive of files (with content) and folders (None)."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for name, content in members:
            member = tarfile.TarInfo(name)
            member.type = tarfile.DIRTYPE if content is None else tarfile.REGTYPE
            member.size, member.mode = len(content or ""), 0o755
            tar.addfile(member, io.BytesIO((content or "").encode()))
        if link:
            member = tarfile.TarInfo(link)
            member.type, member.linkname = tarfile.SYMTYPE, "/etc"
            tar.addfile(member)
    out.seek(0)
    return out


@pytest.mark.parametrize(
    ("code", "errors", "want"),
    [
        pytest.param(b"66", "", "There is no file or folder train:/no/such.", id="no source"),
        pytest.param(b"73", "", "There is no folder for train:/no/such; create /no first.", id="no folder"),
        pytest.param(b"127", "sh: tar: not found", "train has no program `tar`, which copying needs.", id="no tar"),
        pytest.param(b"2", "tar: full", "The copy of train:/no/such failed in the pod: tar: full", id="another"),
        pytest.param(b"137", "", "The copy of train:/no/such failed in the pod.", id="killed"),
    ],
)
def test_why_a_copy_failed(code: bytes, errors: str, want: str) -> None:
    assert explain_failure(code, errors, Place("train", "/no/such")) == want


def test_a_folder_gets_the_targets_name(tmp_path: Path) -> None:
    assert unpack(archive_of(("d", None), ("d/a", "1"), ("d/e/b", "2")), str(tmp_path / "new")) == 0
    assert (tmp_path / "new" / "a").read_text() == "1"
    assert (tmp_path / "new" / "e" / "b").read_text() == "2"


def test_an_existing_folder_gets_the_copy_inside(tmp_path: Path) -> None:
    assert unpack(archive_of(("d", None), ("d/a", "1")), str(tmp_path)) == 0
    assert (tmp_path / "d" / "a").read_text() == "1"
    assert unpack(archive_of(("a", "2")), str(tmp_path)) == 0
    assert (tmp_path / "a").read_text() == "2"


def test_what_would_land_elsewhere_is_left_out(tmp_path: Path) -> None:
    target = tmp_path / "new"
    members = (("d", None), ("d/a", "1"), ("d/../../evil", "x"), ("/evil", "x"), ("other/evil", "x"))
    assert unpack(archive_of(*members, link="d/link"), str(target)) == 4
    assert [path.name for path in tmp_path.rglob("*")] == ["new", "a"]
