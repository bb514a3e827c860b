"""The table of flags: complete, unambiguous, and plain data."""

import json
from collections import Counter
from typing import Any

from fairlead.formats.flags.entry import FlagEntry
from fairlead.formats.flags.table import flag_table
from fairlead.kinds import KINDS
from fairlead.model.spec.fields import fields_of

KIND = KINDS["training"]
TABLE = flag_table(KIND)


def leaves(struct: Any, path: str = "") -> set[str]:
    found = set()
    for field in fields_of(struct):
        here = f"{path}.{field.rest}".lstrip(".")
        if field.struct is None:
            found.add(here)
        else:
            found |= leaves(field.struct, here)
    return found


def reached(entry: FlagEntry) -> set[str]:
    base = entry["path"] + (f".{entry['wrap']}" if "wrap" in entry else "")
    if entry["form"] == "pair":
        return {f"{base}.{inner}" for inner in entry["pair"]} | _preset(entry, f"{base}.")
    if entry["form"] == "item":
        parts = {f"{base}.{part['path']}" for part in entry["parts"] if "pair" not in part}
        pairs = {f"{base}.{part['path']}.{end}" for part in entry["parts"] for end in part.get("pair", ())}
        return parts | pairs | _preset(entry, f"{base}.")
    return {base} | _preset(entry, "")


def _preset(entry: FlagEntry, base: str) -> set[str]:
    return {f"{base}{inner}" for inner in entry.get("preset", {})}


def test_every_field_of_the_spec_can_be_given() -> None:
    assert set().union(*map(reached, TABLE)) == leaves(KIND.spec)


def test_flags_are_unambiguous() -> None:
    names = Counter(name for entry in TABLE for name in (entry["flag"], *entry.get("aliases", ())))
    shorts = Counter(entry["short"] for entry in TABLE if "short" in entry)
    assert [name for name, number in (names | shorts).items() if number > 1] == []


def test_parts_are_named_and_unambiguous() -> None:
    for entry in TABLE:
        names = Counter(part["name"] for part in entry.get("parts", ()))
        assert all(name and number == 1 for name, number in names.items()), entry["flag"]


def test_flags_of_the_runai_grammar_are_there() -> None:
    grammar = """
        --image --image-pull-policy --command --working-dir --environment-variable --env-secret --env-pod-field-ref
        --env-my-credentials --tty --stdin --gpu-devices-request --gpu-request-type --gpu-portion-request
        --gpu-portion-limit --gpu-memory-request --gpu-memory-limit --cpu-core-request --cpu-core-limit
        --cpu-memory-request --cpu-memory-limit --extended-resource --large-shm --existing-pvc --new-pvc --nfs
        --host-path --git-sync --s3 --configmap-map-volume --secret-volume --empty-dir-volume --datavolume --node-pools
        --node-type --toleration --preferred-pod-topology-key --required-pod-topology-key --priority --preemptibility
        --port --external-url --backoff-limit --auto-deletion-time-after-completion --termination-grace-period
        --restart-policy --runs --parallelism --run-as-uid --run-as-gid --run-as-user --supplemental-groups
        --user-group-source --capability --seccomp-profile --host-ipc --host-network --allow-privilege-escalation
        --run-as-non-root --create-home-dir --label --annotation
    """
    assert set(grammar.split()) - {entry["flag"] for entry in TABLE} == set()


def test_parts_of_the_runai_grammar_are_there() -> None:
    parts = {entry["flag"]: {part["name"] for part in entry.get("parts", ())} for entry in TABLE}
    assert parts["--existing-pvc"] >= {"claimname", "path"}
    assert parts["--new-pvc"] >= {
        "claimname", "storageclass", "size", "path", "accessmode-rwo", "accessmode-rom", "accessmode-rwm", "ro",
        "ephemeral",
    }  # fmt: skip
    assert parts["--nfs"] >= {"path", "server", "mountpath", "readwrite"}
    assert parts["--host-path"] >= {"path", "mount", "mount-propagation", "readwrite"}
    assert parts["--git-sync"] >= {"name", "repository", "path", "secret", "rev"}
    assert parts["--s3"] >= {"name", "bucket", "path", "accesskey", "url"}
    assert parts["--configmap-map-volume"] >= {"name", "path"}
    assert parts["--secret-volume"] >= {"path", "name"}
    assert parts["--toleration"] >= {"operator", "key", "value", "effect", "seconds"}
    assert parts["--port"] >= {"service-type", "container", "external"}
    assert parts["--external-url"] >= {"container", "url", "authusers", "authgroups"}


def test_it_is_plain_data() -> None:
    assert json.loads(json.dumps(TABLE)) == TABLE
    assert all(entry["help"] for entry in TABLE)


def test_flags_of_times_say_that_zero_is_not_sent() -> None:
    helps = [entry["help"] for entry in TABLE if entry["form"] == "duration"]
    assert len(helps) == 2
    assert all(text.endswith("On the command line, 0 counts as not given.") for text in helps)
