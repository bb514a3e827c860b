"""Writes a whole bundle to a target, and reports what became of each object."""

from collections.abc import Mapping

from fairlead.client.client import Client
from fairlead.client.json_object import Json
from fairlead.client.transfer.assets import AssetWriter
from fairlead.client.transfer.bundle import Bundle
from fairlead.client.transfer.organization import write_organization
from fairlead.client.transfer.people import write_people
from fairlead.client.transfer.report import Report
from fairlead.client.transfer.workloads import write_workloads
from fairlead.client.transfer.writer import Writer


def write_bundle(writer: Writer, bundle: Bundle, secrets: Mapping[str, Json], source: Client | None = None) -> Report:
    """Write everything to the target, in an order in which each thing finds what it names.

    What is there already is left as it is, so that it can be called again. With a source, workloads that were carried
    over are suspended there.
    """
    writer.report.lines += bundle.lines()
    write_organization(writer)
    write_people(writer)
    AssetWriter(writer, secrets).write()
    write_workloads(writer, source)
    return writer.report
