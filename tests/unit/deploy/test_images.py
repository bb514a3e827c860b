"""Layers of images as tar archives that every container runtime takes."""

import io
import tarfile
from pathlib import Path

from deploy.cluster.images import Layer


def test_a_layer_names_every_path_once(tmp_path: Path) -> None:
    """podman refuses a layer in which a folder stands twice."""
    (tmp_path / "package" / "inner").mkdir(parents=True)
    (tmp_path / "package" / "inner" / "code.py").write_text("")
    layer = Layer(folders={"/data": 0o777})
    layer.add_tree(tmp_path / "package", "/opt/package")
    layer.texts["/data/note"] = "text"
    with tarfile.open(fileobj=io.BytesIO(layer.render())) as archive:
        modes = [(one.name, one.mode) for one in archive if one.isdir()]
    assert modes == [("data", 0o777), ("opt", 0o755), ("opt/package", 0o755), ("opt/package/inner", 0o755)]
