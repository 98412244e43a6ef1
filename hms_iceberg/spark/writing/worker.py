"""The process beside a Spark task that writes what the JVM cannot: the bridge's PythonWriter starts it.

That is files with timestamps in nanoseconds, for which Spark has no type, and with shapes, but for Parquet from Spark
4.3 on: Spark keeps them in another form in each version, and their bounds are counted here.

It serves one task after the other, and ends if none comes for a minute.

A message is JSON and bytes, each with its length before it (four bytes, big endian); so is the answer, without bytes.
"""

from __future__ import annotations

import base64
import json
import os
import pickle
import select
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO

import msgspec
import pyarrow as pa

from hms_iceberg.arrow.formats.content_files import ContentFormat, ContentWriter
from hms_iceberg.arrow.metrics.footer_metrics import MetricsMode, metrics_modes
from hms_iceberg.spark.writing.row_schema import from_spark
from hms_iceberg.spec.manifests.manifest_values import DataFile
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.spec.schema import Schema
from hms_iceberg.spec.table_properties import PARQUET_ROW_GROUP_BYTES, PARQUET_ROW_GROUP_ROWS
from hms_iceberg.storage import Storage

_IDLE_SECONDS = 60


@dataclass(frozen=True)
class _Job:
    """The settings that all files of a write have in common."""

    file_format: str
    schema: Schema
    properties: Mapping[str, str]
    modes: Mapping[int, MetricsMode]
    storage: Storage


def write_job(
    file_format: str, schema: Schema, metadata: TableMetadata, properties: Mapping[str, str], storage: Storage
) -> str:
    """Pickles, in base64, the job of the Python process that writes files; the write's properties go first."""
    modes = metrics_modes(metadata.schema(), properties, metadata.sort_order())
    ContentFormat(storage, file_format, schema, properties, modes)
    return base64.b64encode(pickle.dumps(_Job(file_format, schema, dict(properties), modes, storage))).decode()


def described(data: bytes) -> DataFile:
    """The file that the process described; its partition is not known there."""
    return msgspec.msgpack.decode(data, type=DataFile)


class _Files:
    """The files that are open, by their number."""

    def __init__(self, job: _Job) -> None:
        self._schema = job.schema
        self._format = ContentFormat(job.storage, job.file_format, job.schema, job.properties, job.modes)
        self._open: dict[int, ContentWriter] = {}
        self._waiting: dict[int, list[pa.RecordBatch]] = {}
        is_grouped = job.file_format == "parquet"
        self._group_bytes = PARQUET_ROW_GROUP_BYTES.of(job.properties) if is_grouped else 0
        self._group_rows = PARQUET_ROW_GROUP_ROWS.of(job.properties)

    def open(self, number: int, location: str) -> dict[str, Any]:
        self._open[number] = self._format.open(location)
        self._waiting[number] = []
        return {}

    def write(self, number: int, rows: bytes) -> dict[str, Any]:
        waiting = self._waiting[number]
        with pa.ipc.open_stream(rows) as stream:
            waiting += [from_spark(batch, self._schema) for batch in stream]
        size = sum(batch.nbytes for batch in waiting)
        if size >= self._group_bytes or sum(batch.num_rows for batch in waiting) >= self._group_rows:
            self._flush(number)
            size = 0
        return {"size": self._open[number].size + size}

    def _flush(self, number: int) -> None:
        if self._waiting[number]:
            self._open[number].write_row_group(self._waiting[number])
            self._waiting[number] = []

    def close(self, number: int) -> dict[str, Any]:
        self._flush(number)
        del self._waiting[number]
        file = self._open.pop(number).close()
        data = base64.b64encode(msgspec.msgpack.encode(file)).decode()
        return {"size": file.file_size_in_bytes, "data_file": data}

    def abandon(self, number: int | None = None) -> dict[str, Any]:
        for each in [number] if number is not None else list(self._open):
            if each in self._open:
                self._waiting.pop(each, None)
                self._open.pop(each).abandon()
        return {}


def serve(source: BinaryIO, target: BinaryIO) -> None:
    """Answers messages until there are no more, or no task comes; files that are open then are given up."""
    files: _Files | None = None
    answer: dict[str, Any]
    is_idle = False
    try:
        while not is_idle or select.select([source], [], [], _IDLE_SECONDS)[0]:
            length = source.read(4)
            if len(length) < 4:
                return
            message = json.loads(source.read(int.from_bytes(length, "big")))
            data = source.read(int.from_bytes(source.read(4), "big"))
            try:
                is_idle = message["call"] == "rest"
                if message["call"] == "begin":
                    files, answer = _Files(pickle.loads(data)), {}
                elif is_idle:
                    if files is not None:
                        files.abandon()
                    files, answer = None, {}
                else:
                    assert files is not None
                    answer = _answer(files, message, data)
            except Exception as error:
                answer = {"error": f"{type(error).__name__}: {error}"}
            text = json.dumps(answer).encode()
            target.write(len(text).to_bytes(4, "big") + text)
            target.flush()
    finally:
        if files is not None:
            files.abandon()


def _answer(files: _Files, message: Mapping[str, Any], data: bytes) -> dict[str, Any]:
    number = message["file"]
    if message["call"] == "open":
        return files.open(number, message["location"])
    if message["call"] == "write":
        return files.write(number, data)
    return files.close(number) if message["call"] == "close" else files.abandon(number)


def main() -> None:
    """Serves a task over standard input and output; everything else that is printed goes to standard error."""
    target = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    serve(sys.stdin.buffer, target)


if __name__ == "__main__":
    main()
