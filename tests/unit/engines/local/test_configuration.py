"""What the settings of a server say about the pods of a local engine."""

from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from fairlead.engines.local.configuration import LocalOptions, load_settings


@pytest.mark.parametrize(("allow", "home"), [((), "/home/fairlead"), (("no-isolation",), "/tmp")])
def test_only_isolated_pods_have_a_home_that_is_made_for_them(
    tmp_path: Path, allow: tuple[str, ...], home: str
) -> None:
    """A pod without a working directory starts in its home, which without isolation must exist on this machine."""
    options = SimpleNamespace(
        data_dir=tmp_path,
        personal=False,
        nodes=(),
        nodes_file="",
        allow=allow,
        runtimes=(),
        runtime_options=(),
        runtime_environment=(),
        pids_limit=None,
        host="127.0.0.1",
    )
    assert load_settings(cast(LocalOptions, options), lambda: 0).run_as.home == home
