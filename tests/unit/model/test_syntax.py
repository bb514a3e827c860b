"""The forms of texts in a spec."""

import pytest

from fairlead.model.syntax import Syntax, flaw_of


@pytest.mark.parametrize(
    "image",
    [
        "python",
        "python:3.12",
        "fairlead.local/host",
        "localhost/mine:1",
        "gpu1.lab.example:5000/team/train_it:v1.0-rc",
        "[fd00::1]:5000/x",
        "nvcr.io/nvidia/pytorch:24.05-py3",
        "a/b__c/d--e@sha256:" + "0" * 64,
        "docker://alpine:3",
        "docker-archive:/images/mine.tar",
        "oci:/images/folder:tag",
    ],
)
def test_an_image_that_a_runtime_can_read(image: str) -> None:
    assert flaw_of(Syntax.IMAGE, image) == ""


@pytest.mark.parametrize(
    ("image", "want"),
    [
        ("python 3", "is not a valid image reference"),
        ("Python:3", "such as python:3"),
        ("python:", "is not a valid image reference"),
        ("https://example.com/x", "is not a valid image reference"),
        ("x@sha256:12", "is not a valid image reference"),
        ("x\n", "is not a valid image reference"),
        ("-x", "is not a valid image reference"),
        ("a//b", "is not a valid image reference"),
    ],
)
def test_an_image_that_no_runtime_can_read(image: str, want: str) -> None:
    assert want in flaw_of(Syntax.IMAGE, image)
