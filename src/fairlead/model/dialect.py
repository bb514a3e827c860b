"""In which form workloads are submitted. Formats say it in their submissions, records keep it."""

from enum import StrEnum


class Dialect(StrEnum):
    REST = "rest"
    #: That of an older version of the Trainings API. What contradicts itself in it is resolved instead of refused.
    OLDER_REST = "rest-older"
    WORKLOAD_YAML = "workload-yaml"
    CUSTOM_RESOURCE = "custom-resource"
    #: A Kubernetes manifest that was read as a workload of a kind.
    MANIFEST = "manifest"
    #: A Kubernetes manifest that is itself applied to a cluster, with the pod templates of Fairlead.
    OBJECT = "object"
    #: Only in records of earlier versions.
    CLI = "cli"

    @property
    def is_lenient(self) -> bool:
        return self is Dialect.OLDER_REST

    @property
    def has_yaml_names(self) -> bool:
        """Whether its fields have the names of workload YAML."""
        return self in (Dialect.WORKLOAD_YAML, Dialect.CUSTOM_RESOURCE)

    @property
    def has_name_prefixes(self) -> bool:
        """Whether a request can ask for a name that begins with the given one."""
        return self in (Dialect.REST, Dialect.OLDER_REST)
