"""OpenLineage events of what a job reads and writes: tables, their columns and versions.

Source: OpenLineage's specification, `RunEvent`, and its facets of data sets; names of Hive tables are `db.table` in the
namespace `hive://host:port`.
"""

from __future__ import annotations

import logging
import uuid
from datetime import datetime, timezone
from types import TracebackType
from typing import Any

from hms_iceberg.errors import MissingDependencyError
from hms_iceberg.reports import MADE, CommitReport, Listening, Report, listen

__all__ = ["LineageRun"]

logger = logging.getLogger(__name__)
_PRODUCER = "https://github.com/hms_iceberg"


class LineageRun:
    """A run of a job, as a context manager: scans within it are its inputs, commits its outputs.

    It hears the reports of the whole process: of Python, and of a Spark session whose driver is this process. An event
    tells of the start, of each commit, and of the end, with all tables.

    Args:
        job: the job's name.
        tables: the namespace of the tables, such as `hive://metastore:9083`.
        namespace: that of the job.
        client: a client of `openlineage-python`; unless given, one as the environment configures it
            (`OPENLINEAGE_URL` …).

    Raises:
        MissingDependencyError: `openlineage-python` is not installed.
    """

    def __init__(self, job: str, tables: str, namespace: str = "default", client: Any = None) -> None:
        try:
            from openlineage.client import OpenLineageClient, event_v2
        except ImportError as error:
            raise MissingDependencyError(
                "Lineage needs openlineage-python: pip install 'hms_iceberg[lineage]'"
            ) from error
        self._events: Any = event_v2
        self._client = client or OpenLineageClient()
        self._tables = tables
        self._job = event_v2.Job(namespace=namespace, name=job)
        self._run = event_v2.Run(runId=str(uuid.uuid4()))
        self._inputs: dict[str, Any] = {}
        self._outputs: dict[str, Any] = {}
        self._listening: Listening | None = None

    @property
    def run_id(self) -> str:
        """The run's id, as of the events."""
        return str(self._run.runId)

    def __enter__(self) -> LineageRun:
        self._emit(self._events.RunState.START)
        self._listening = listen(self._hear)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._listening is not None:
            self._listening.close()
        states = self._events.RunState
        self._emit(states.COMPLETE if error is None else states.FAIL, error)

    def _hear(self, report: Report) -> None:
        if isinstance(report, CommitReport):
            if report.outcome == MADE:
                self._outputs[report.table] = self._output(report)
                self._emit(self._events.RunState.RUNNING)
            return
        version = None if report.snapshot_id is None else str(report.snapshot_id)
        facets = _facets(report.schema, version)
        self._inputs[report.table] = self._events.InputDataset(namespace=self._tables, name=report.table, facets=facets)

    def _output(self, report: CommitReport) -> Any:
        from openlineage.client.facet_v2 import output_statistics_output_dataset as statistics

        version = None if report.snapshot_id is None else str(report.snapshot_id)
        told = {}
        rows, size, files = (
            report.summary.get(name) for name in ("added-records", "added-files-size", "added-data-files")
        )
        if rows is not None:
            told["outputStatistics"] = statistics.OutputStatisticsOutputDatasetFacet(
                rowCount=int(rows), size=int(size or 0), fileCount=int(files or 0)
            )
        return self._events.OutputDataset(
            namespace=self._tables, name=report.table, facets=_facets(report.schema, version), outputFacets=told
        )

    def _emit(self, state: Any, error: BaseException | None = None) -> None:
        """Sends an event; a server that does not take it harms no job."""
        if error is not None:
            from openlineage.client.facet_v2 import error_message_run

            told = error_message_run.ErrorMessageRunFacet(message=str(error), programmingLanguage="PYTHON")
            self._run.facets = {**(self._run.facets or {}), "errorMessage": told}
        try:
            self._client.emit(
                self._events.RunEvent(
                    eventType=state,
                    eventTime=datetime.now(timezone.utc).isoformat(),
                    run=self._run,
                    job=self._job,
                    producer=_PRODUCER,
                    inputs=list(self._inputs.values()),
                    outputs=list(self._outputs.values()),
                )
            )
        except Exception as failure:
            logger.warning("An event of lineage was not taken: %s", failure)


def _facets(schema: Any, version: str | None) -> dict[str, Any]:
    from openlineage.client.facet_v2 import dataset_version_dataset, schema_dataset

    fields = [
        schema_dataset.SchemaDatasetFacetFields(name=each.name, type=str(each.field_type), description=each.doc)
        for each in schema.fields
    ]
    found: dict[str, Any] = {"schema": schema_dataset.SchemaDatasetFacet(fields=fields)}
    if version is not None:
        found["version"] = dataset_version_dataset.DatasetVersionDatasetFacet(datasetVersion=version)
    return found
