"""How amounts of resources are shown."""


def amount(value: float | None, resource: str, units: str = "") -> str:
    """A quota or usage: GPUs, cores, or memory with its unit; null and -1 mean unlimited."""
    if value is None or value == -1:
        return "unlimited"
    if resource == "cpu":
        return f"{value / 1000:g}"
    if resource == "memory":
        factor = {"Mib": 2**20, "MB": 10**6, "GB": 10**9}.get(units, 1)
        return f"{value * factor / 2**30:.3g} GiB"
    return f"{value:g}"
