"""The forms of texts in a spec that would be refused later, when the pod is created: labels, paths, keys, URLs, images.

A field declares its form (`FieldInfo.syntax`), and `rules.py` checks it. `flaw_of` says what is wrong with a text.
"""

import re
from enum import Enum

_LABEL = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?\Z")
_POOL = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?\Z")
_PREFIX = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*\Z")
_OBJECT_KEY = re.compile(r"[-._A-Za-z0-9]+\Z")
#: Scheme, perhaps a user, a name or an address in brackets, perhaps a port, and what follows.
_WEB = re.compile(
    r"https?://([^\s/?#@]*@)?(\[[0-9a-f:.]+\]|[^\s/?#@:\[\]]+)(:(?P<port>[0-9]{1,5}))?([/?#]\S*)?\Z",
    re.IGNORECASE,
)
_OWN = re.compile(r"(https?://)?(?P<host>[a-z0-9.-]*)(:(?P<port>[0-9]{1,5}))?(?P<path>/[^\s/]\S*)?/?\Z", re.IGNORECASE)
_SCP = re.compile(r"([^\s@:/]+@)?[^\s@:/]+:\S+\Z")
#: A file or folder of this machine, which only the local engine can read.
_LOCAL_IMAGE = re.compile(r"(docker-archive|oci-archive|oci|dir):/[^\s]*\Z")
#: An optional transport as podman knows it, registry, lowercase path, tag and digest.
_IMAGE = re.compile(
    r"(docker://)?((?:[A-Za-z0-9](?:[-.A-Za-z0-9]*[A-Za-z0-9])?|\[[0-9a-f:]+\])(?::[0-9]+)?/)?"
    r"[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*(?:/[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*)*"
    r"(:[A-Za-z0-9_][-.A-Za-z0-9_]{0,127})?(@[A-Za-z][-+._A-Za-z0-9]*:[0-9a-fA-F]{32,})?\Z"
)
#: A name, an IPv4 address, or an IPv6 address, perhaps in brackets.
_HOST_NAME = re.compile(r"([A-Za-z0-9]([-._A-Za-z0-9]*[A-Za-z0-9])?|\[?[0-9A-Fa-f]*:[0-9A-Fa-f:.]+\]?)\Z")
_MIG_PROFILE = re.compile(r"[0-9]+g\.[0-9]+gb(\.[a-z]+)*\Z")
_BUCKET_NAME = re.compile(r"[A-Za-z0-9][-._A-Za-z0-9]{0,254}\Z")
_GPUS, _HUGE_PAGES, _LAST_PORT = "nvidia.com/gpu", "hugepages-", 65535
_NO_HOST = re.compile(r"[a-z+]+:/{2,}\Z", re.IGNORECASE)
_LABEL_RULE = "letters, digits, '-', '_' and '.', beginning and ending with a letter or digit"
_LONGEST_LABEL, _LONGEST_PREFIX, _LONGEST_FILE_NAME = 63, 253, 255
#: Programs that git would run as a transport, and Kubernetes' own domain and its prefix in quotas.
_HELPER = re.compile(r"[A-Za-z0-9]+::")
_RESERVED = re.compile(r"(requests\.|([^/]*\.)?kubernetes\.io/)")


class Syntax(Enum):
    """The forms that texts can have."""

    LABEL_KEY = "label-key"
    LABEL_VALUE = "label-value"
    NODE_POOL = "node-pool"
    ABSOLUTE_PATH = "absolute-path"
    MOUNT_PATH = "mount-path"
    SUB_PATH = "sub-path"
    OBJECT_KEY = "object-key"
    WEB_URL = "web-url"
    REPOSITORY = "repository"
    OWN_URL = "own-url"
    IMAGE = "image"
    RESOURCE_NAME = "resource-name"
    OBJECT_NAME = "object-name"
    GIT_BRANCH = "git-branch"
    GIT_REVISION = "git-revision"
    HOST = "host"
    BUCKET = "bucket"
    MIG_PROFILE = "mig-profile"


def flaw_of(syntax: Syntax, text: str) -> str:
    """What is wrong with a text, with an example of a right one; empty if nothing is."""
    return _FLAWS[syntax](text)


def _label_key(text: str) -> str:
    """A label's key is a name, which may have a domain and a slash before it."""
    prefix, slash, name = text.rpartition("/")
    if not text:
        return "is empty; give the key of a label, such as kubernetes.io/hostname"
    if slash and (len(prefix) > _LONGEST_PREFIX or not _PREFIX.match(prefix)):
        return f"is '{text[:80]}'; the part before the slash must be a domain, such as example.com/zone"
    if len(name) > _LONGEST_LABEL or not _LABEL.match(name):
        return f"is '{text[:80]}', which is not the key of a label: at most 63 {_LABEL_RULE}, such as example.com/zone"
    return ""


def _label_value(text: str) -> str:
    if text and (len(text) > _LONGEST_LABEL or not _LABEL.match(text)):
        return f"is '{text[:80]}', which is not the value of a label: at most 63 {_LABEL_RULE}, such as zone-1"
    return ""


def _node_pool(text: str) -> str:
    """A name that a node pool can be given."""
    if not _POOL.match(text) or len(text) > _LONGEST_LABEL:
        rule = "begins with a letter, has at most 63 lower-case letters, digits and hyphens"
        return f"is '{text[:80]}', and no node pool can have that name: it {rule}, such as a100"
    return ""


def _absolute_path(text: str) -> str:
    if not text.startswith("/"):
        return f"is '{text[:80]}'; give an absolute path, such as /{text.lstrip('./')[:80] or 'data'}"
    return ""


def _mount_path(text: str) -> str:
    """A volume is mounted at an absolute path that is not the root."""
    if not text.startswith("/"):
        return _absolute_path(text)
    parts = [part for part in text.split("/") if part not in ("", ".")]
    if not parts:
        return "is '/'; a volume cannot be mounted over the whole file system, give a path such as /data"
    if ":" in text or ".." in parts:
        return f"is '{text[:80]}'; a mount path has no ':' and no '..', such as /data"
    if parts[0] == "proc":
        return f"is '{text[:80]}'; nothing can be mounted over /proc, give a path such as /data"
    if any(len(part.encode()) > _LONGEST_FILE_NAME for part in parts):
        return f"is '{text[:80]}…'; no name in a path is longer than {_LONGEST_FILE_NAME} bytes"
    return ""


def _sub_path(text: str) -> str:
    if text.startswith("/") or ".." in text.split("/"):
        return f"is '{text[:80]}'; give a path inside the volume, without a leading '/' and without '..'"
    return ""


def _object_key(text: str) -> str:
    """A key of a secret or config map is the name of a file."""
    if text.startswith("..") or text == "." or not _OBJECT_KEY.match(text):
        return f"is '{text[:80]}', which is not a key; use letters, digits, '-', '_' and '.', such as access.key"
    return ""


def _web_url(text: str) -> str:
    """An address that browsers and HTTP clients can open."""
    match = _WEB.match(text)
    if match and _has_port(match):
        return ""
    return f"is '{text[:80]}'; give an http or https URL, such as https://example.com/path"


def _own_url(text: str) -> str:
    """An address that a user chooses for a port: a host, a path or both; empty for a generated one."""
    match = _OWN.match(text.strip())
    if not text or (match and _has_port(match) and (match["host"] or match["path"])):
        return ""
    return f"is '{text[:80]}'; give a host and a path, such as https://mine.example.com/notebook"


def _repository(text: str) -> str:
    """The address of a git repository: a URL, user@host:path, or an absolute path."""
    is_address = "://" in text or text.startswith("/") or bool(_SCP.match(text))
    is_cut_off = _NO_HOST.match(text) or _HELPER.match(text)
    if is_address and not is_cut_off and not text.startswith("-") and not any(char.isspace() for char in text):
        return ""
    return f"is '{text[:80]}'; give the URL of a repository, such as https://github.com/owner/name.git"


def _image(text: str) -> str:
    """What is wrong with the reference of an image, so that no runtime could pull it."""
    if not text or _IMAGE.match(text) or _LOCAL_IMAGE.match(text):
        return ""
    if _IMAGE.match(text.lower()):
        return f"is '{text[:80]}'; image names are lowercase, such as {text.lower()[:80]}"
    return f"is '{text[:80]}', which is not a valid image reference, such as python:3.12 or example.com/team/train:1"


def _resource_name(text: str) -> str:
    """An extended resource has a domain, which tells it from those that Kubernetes and the spec have names for."""
    if text == _GPUS:
        return f"is '{text}'; request GPUs with gpuDevicesRequest"
    if _label_key(text) or _RESERVED.match(text) or ("/" not in text and not text.startswith(_HUGE_PAGES)):
        return f"is '{text[:80]}', which is not a valid extended resource name, such as vendor.example/link"
    return ""


def _object_name(text: str) -> str:
    if text and (len(text) > _LONGEST_PREFIX or not _PREFIX.match(text)):
        return f"is '{text[:80]}', which is not a valid name: use lower-case letters, digits and '-', such as my-data"
    return ""


def _git_branch(text: str) -> str:
    """As `git check-ref-format` has it."""
    parts = text.split("/")
    is_odd = any(not part or part[0] == "." or part.endswith((".", ".lock")) for part in parts)
    if _git_revision(text) or is_odd or text == "@" or "@{" in text or any(char in "~^:?*[\\" for char in text):
        return f"is '{text[:80]}', which is not a valid branch name, such as main or feature/x"
    return ""


def _git_revision(text: str) -> str:
    if text.startswith("-") or ".." in text or not text.isprintable() or " " in text:
        return f"is '{text[:80]}'; give a commit, a tag or a branch, such as v1.2 or 4f0c2aa"
    return ""


def _host(text: str) -> str:
    if text and not _HOST_NAME.match(text):
        return f"is '{text[:80]}'; give the name or address of a server, such as files.example.com or 10.0.0.5"
    return ""


def _bucket(text: str) -> str:
    if not _BUCKET_NAME.match(text) or ".." in text:
        return (
            f"is '{text[:80]}', which is not a valid bucket name: use letters, digits, '-', '_' and '.', such as models"
        )
    return ""


def _mig_profile(text: str) -> str:
    """As the device plugin names the resource: slices, memory, and attributes behind a dot."""
    if not _MIG_PROFILE.match(text):
        return f"is '{text[:80]}', which is not a MIG profile, such as 1g.5gb or 1g.10gb.me"
    return ""


def _has_port(match: re.Match[str]) -> bool:
    return not match["port"] or 1 <= int(match["port"]) <= _LAST_PORT


_FLAWS = {
    Syntax.LABEL_KEY: _label_key,
    Syntax.LABEL_VALUE: _label_value,
    Syntax.NODE_POOL: _node_pool,
    Syntax.ABSOLUTE_PATH: _absolute_path,
    Syntax.MOUNT_PATH: _mount_path,
    Syntax.SUB_PATH: _sub_path,
    Syntax.OBJECT_KEY: _object_key,
    Syntax.WEB_URL: _web_url,
    Syntax.REPOSITORY: _repository,
    Syntax.OWN_URL: _own_url,
    Syntax.IMAGE: _image,
    Syntax.RESOURCE_NAME: _resource_name,
    Syntax.OBJECT_NAME: _object_name,
    Syntax.GIT_BRANCH: _git_branch,
    Syntax.GIT_REVISION: _git_revision,
    Syntax.HOST: _host,
    Syntax.BUCKET: _bucket,
    Syntax.MIG_PROFILE: _mig_profile,
}
