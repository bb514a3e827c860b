"""Nodes as the operator declares them."""

import pytest

from fairlead.engines.local.linux.nvml import observe_devices
from fairlead.engines.local.nodes import observe_machine, parse_node, parse_nodes
from fairlead.model.allowed import Allowed, parse_allowed
from fairlead.model.errors import Invalid
from fairlead.model.records.organization import GpuDevice, Node, Taint

GIB = 1024**3
MACHINE = Node(id="here", name="here", cpu_milli=2000, memory_bytes=8 * GIB, created_at=5)


def test_everything_can_be_declared() -> None:
    text = (
        "big:cpu=4,memory=16Gi,gpus=2,gpu-memory=80Gi,gpu-model=A100,labels=zone=a;rack=7,"
        "pods=110,taints=gpu=only:NoExecute;quiet,example.com/foo=2"
    )
    assert parse_node(text, MACHINE) == Node(
        id="big",
        name="big",
        cpu_milli=4000,
        memory_bytes=16 * GIB,
        pods=110,
        gpus=tuple(GpuDevice(index, "", "A100", 80 * 1024) for index in range(2)),
        extended={"example.com/foo": 2},
        labels={"zone": "a", "rack": "7"},
        taints=(Taint("gpu", "only", "NoExecute"), Taint("quiet")),
        created_at=5,
        declared=("cpu", "memory", "gpus"),
    )


def test_what_is_not_declared_is_as_on_the_machine() -> None:
    node = parse_node("gpus=1", MACHINE)
    assert (node.name, node.cpu_milli, node.memory_bytes, node.declared) == ("here", 2000, 8 * GIB, ("gpus",))


def test_a_node_without_capacity_can_be_declared() -> None:
    node = parse_node("none:cpu=0,memory=0,gpus=0", MACHINE)
    assert (node.cpu_milli, node.memory_bytes, node.gpus) == (0, 0, ())


@pytest.mark.parametrize(
    ("text", "want_words"),
    [
        ("a:cpu", "no value"),
        ("a:cpus=4", "'cpus' is not known"),
        ("a:memory=lots", "lots"),
        ("-a:cpu=1", "not a valid node name"),
        ("a:cpu=-1", "negative"),
    ],
)
def test_a_wrong_declaration_says_what_is_wrong(text: str, want_words: str) -> None:
    with pytest.raises(Invalid, match=want_words):
        parse_node(text, MACHINE)


def test_a_file_of_nodes() -> None:
    document = """
    nodes:
      - name: a
        cpu: 500m
        memory: 1Gi
        gpus: 1
        gpuMemory: 16Gi
        labels: {zone: north}
        resources: {example.com/foo: 3}
      - name: b
    """
    first, second = parse_nodes(document, MACHINE)
    assert (first.cpu_milli, first.memory_bytes, first.gpus[0].memory_mib) == (500, GIB, 16 * 1024)
    assert (first.labels, first.extended) == ({"zone": "north"}, {"example.com/foo": 3})
    assert (second.name, second.cpu_milli) == ("b", 2000)


@pytest.mark.parametrize("document", ["nodes: 3", "- 7", "{", "[]: ["], ids=["number", "item", "open", "odd"])
def test_a_file_that_is_not_a_list_of_nodes(document: str) -> None:
    with pytest.raises(Invalid, match="nodes file"):
        parse_nodes(document, MACHINE)


def test_this_machine_has_cores_and_memory() -> None:
    node = observe_machine(7)
    assert node.cpu_milli >= 1
    assert node.memory_bytes > 1024
    assert node.created_at == 7


def test_without_the_library_there_are_no_devices() -> None:
    assert observe_devices("no-such-library.so.1") == ()


def test_flags_of_what_is_allowed() -> None:
    words = ("no-isolation", "host-path=/data", "host-path=/scratch", "capability=NET_ADMIN")
    want = Allowed(no_isolation=True, host_paths=("/data", "/scratch"), capabilities=("NET_ADMIN",))
    assert parse_allowed(words) == want


@pytest.mark.parametrize("word", ["everything", "root=yes"])
def test_an_unknown_flag_is_refused_with_the_known_ones(word: str) -> None:
    with pytest.raises(Invalid, match="known are"):
        parse_allowed((word,))
