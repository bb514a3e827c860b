"""Images made on the spot, without Docker and without a registry: an archive that containerd imports.

A layer is a tar of files from this machine; an image is one or more layers, a config and its names. Used by `up` for
the images that pods of a cluster run (busybox, Python), and by `make image` for Fairlead's own.
"""

import gzip
import hashlib
import io
import json
import subprocess
import tarfile
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

#: Same files, same archive: nothing in it says when it was made.
EPOCH = "1970-01-01T00:00:00Z"
MANIFEST = "application/vnd.oci.image.manifest.v1+json"
CONFIG = "application/vnd.oci.image.config.v1+json"
LAYER = "application/vnd.oci.image.layer.v1.tar+gzip"
INDEX = "application/vnd.oci.image.index.v1+json"


@dataclass
class Layer:
    """Paths in the image and what stands there: a file of this machine, a text, a link, a folder."""

    files: dict[str, Path] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)
    links: dict[str, str] = field(default_factory=dict)
    #: With their modes.
    folders: dict[str, int] = field(default_factory=dict)

    def add_tree(self, source: Path, target: str, leave_out: Iterable[str] = ("__pycache__",)) -> None:
        skipped = set(leave_out)
        for path in sorted(source.rglob("*")):
            inside = path.relative_to(source)
            if skipped.intersection(inside.parts):
                continue
            name = f"{target}/{inside}"
            if path.is_symlink() and not path.exists():
                continue
            if path.is_dir():
                self.folders.setdefault(name, 0o755)
            else:
                self.files[name] = path.resolve()

    def add_program(self, source: Path, target: str = "") -> None:
        """With the shared libraries that it names."""
        self.files[target or str(source)] = source.resolve()
        self.add_libraries(source)

    def add_libraries(self, source: Path) -> None:
        shown = subprocess.run(["ldd", str(source)], capture_output=True, text=True).stdout
        for word in shown.split():
            # What a wheel brings along is found beside it, in the image too.
            if word.startswith(("/lib", "/usr/lib", "/usr/local/lib")) and Path(word).exists():
                self.files[word] = Path(word).resolve()

    def render(self) -> bytes:
        """As a tar, in one order, with every folder on the way to a file."""
        output = io.BytesIO()
        with tarfile.open(fileobj=output, mode="w", format=tarfile.PAX_FORMAT) as archive:
            # podman refuses a layer that names a folder twice.
            folders = dict.fromkeys(self._parents(), 0o755) | {
                name.lstrip("/"): mode for name, mode in self.folders.items()
            }
            for name, mode in sorted(folders.items()):
                archive.addfile(entry(name, tarfile.DIRTYPE, mode))
            for name, target in sorted(self.links.items()):
                made = entry(name, tarfile.SYMTYPE, 0o777)
                made.linkname = target
                archive.addfile(made)
            for name, text in sorted(self.texts.items()):
                add_bytes(archive, name, text.encode(), 0o644)
            for name, path in sorted(self.files.items()):
                add_bytes(archive, name, path.read_bytes(), 0o755 if path.stat().st_mode & 0o111 else 0o644)
        return output.getvalue()

    def _parents(self) -> set[str]:
        named = [*self.files, *self.texts, *self.links, *self.folders]
        return {str(parent) for name in named for parent in Path(name.lstrip("/")).parents if str(parent) != "."}


def entry(name: str, kind: bytes, mode: int) -> tarfile.TarInfo:
    made = tarfile.TarInfo(name.lstrip("/"))
    made.type, made.mode = kind, mode
    return made


def add_bytes(archive: tarfile.TarFile, name: str, content: bytes, mode: int) -> None:
    made = entry(name, tarfile.REGTYPE, mode)
    made.size = len(content)
    archive.addfile(made, io.BytesIO(content))


@dataclass(frozen=True)
class Image:
    names: tuple[str, ...]
    layers: tuple[Layer, ...]
    settings: dict[str, Any]


def write_archive(target: Path, images: Iterable[Image]) -> None:
    """One OCI archive with all of them: a layout folder as a tar, that containerd, podman and skopeo read."""
    blobs: dict[str, bytes] = {}
    listed = []
    rendered: dict[int, tuple[dict[str, Any], str]] = {}
    for image in images:
        layers = []
        differences = []
        for layer in image.layers:
            if id(layer) not in rendered:
                plain = layer.render()
                packed = gzip.compress(plain, compresslevel=1, mtime=0)
                rendered[id(layer)] = (keep(blobs, packed, LAYER), f"sha256:{hashlib.sha256(plain).hexdigest()}")
            described, difference = rendered[id(layer)]
            layers.append(described)
            differences.append(difference)
        config = keep(blobs, render_config(image.settings, differences), CONFIG)
        document = {"schemaVersion": 2, "mediaType": MANIFEST, "config": config, "layers": layers}
        manifest = keep(blobs, json.dumps(document).encode(), MANIFEST)
        for name in image.names:
            notes = {"io.containerd.image.name": name, "org.opencontainers.image.ref.name": name.rpartition(":")[2]}
            listed.append({**manifest, "annotations": notes})
    write_layout(target, blobs, listed)


def render_config(settings: dict[str, Any], differences: list[str]) -> bytes:
    document = {
        "created": EPOCH,
        "architecture": "amd64",
        "os": "linux",
        "config": settings,
        "rootfs": {"type": "layers", "diff_ids": differences},
    }
    return json.dumps(document).encode()


def keep(blobs: dict[str, bytes], content: bytes, kind: str) -> dict[str, Any]:
    digest = hashlib.sha256(content).hexdigest()
    blobs[digest] = content
    return {"mediaType": kind, "digest": f"sha256:{digest}", "size": len(content)}


def write_layout(target: Path, blobs: dict[str, bytes], listed: list[dict[str, Any]]) -> None:
    partial = target.with_suffix(".partial")
    index = {"schemaVersion": 2, "mediaType": INDEX, "manifests": listed}
    with tarfile.open(partial, "w") as archive:
        for name in ("blobs", "blobs/sha256"):
            archive.addfile(entry(name, tarfile.DIRTYPE, 0o755))
        add_bytes(archive, "oci-layout", b'{"imageLayoutVersion": "1.0.0"}', 0o644)
        add_bytes(archive, "index.json", json.dumps(index).encode(), 0o644)
        for digest, content in sorted(blobs.items()):
            add_bytes(archive, f"blobs/sha256/{digest}", content, 0o644)
    partial.rename(target)
