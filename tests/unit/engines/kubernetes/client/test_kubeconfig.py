"""Which file says how the cluster is reached."""

import json
from pathlib import Path

import pytest

from fairlead.engines.kubernetes.client.kubeconfig import load_access
from fairlead.model.errors import Refused


def write_kubeconfig(path: Path) -> Path:
    told = {
        "current-context": "here",
        "contexts": [{"name": "here", "context": {"cluster": "here"}}],
        "clusters": [{"name": "here", "cluster": {"server": f"http://{path.stem}.example"}}],
    }
    path.write_text(json.dumps(told))
    return path


@pytest.mark.parametrize(
    ("named", "listed", "want"),
    [
        pytest.param("{0}/first", "", "first.example", id="named"),
        pytest.param("", "{0}/first", "first.example", id="in KUBECONFIG"),
        pytest.param("", "{0}/first:{0}/second", "first.example", id="the first of several in KUBECONFIG"),
        pytest.param("{0}/first:{0}/second", "{0}/first:{0}/second", "first.example", id="as the server hands it on"),
        pytest.param("{0}/second", "{0}/first:{0}/second", "second.example", id="named before KUBECONFIG"),
        pytest.param("{0}/a:b", "{0}/first", "odd.example", id="a name with a colon is one file"),
    ],
)
def test_which_kubeconfig_is_read(tmp_path: Path, named: str, listed: str, want: str) -> None:
    for name in ("first", "second"):
        write_kubeconfig(tmp_path / name)
    odd = write_kubeconfig(tmp_path / "a:b")
    odd.write_text(odd.read_text().replace("http://a:b", "http://odd"))
    access = load_access(named.format(tmp_path), {"KUBECONFIG": listed.format(tmp_path)})
    assert access.host == want


def test_without_any_the_places_that_were_looked_at_are_named(tmp_path: Path) -> None:
    with pytest.raises(Refused) as refused:
        load_access("", {}, home=tmp_path)
    for place in ("--kubeconfig", "KUBECONFIG", f"{tmp_path}/.kube/config", "service account"):
        assert place in str(refused.value)
    (tmp_path / ".kube").mkdir()
    write_kubeconfig(tmp_path / ".kube" / "config")
    assert load_access("", {}, home=tmp_path).host == "config.example"


def test_a_credential_plugin_that_is_a_text_is_refused(tmp_path: Path) -> None:
    path = write_kubeconfig(tmp_path / "config")
    config = json.loads(path.read_text())
    config["contexts"][0]["context"]["user"] = "me"
    config["users"] = [{"name": "me", "user": {"exec": "aws"}}]
    path.write_text(json.dumps(config))
    with pytest.raises(Refused, match="has a credential plugin that is not an object"):
        load_access(str(path), {})
