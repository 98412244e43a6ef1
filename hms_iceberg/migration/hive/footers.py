"""Reads the footers of a table's files in parallel: metrics for Iceberg, and whether the files fit the table."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from hms_iceberg.arrow.columns.projection import FileLeaf, file_leaves, identified
from hms_iceberg.arrow.metrics.footer_metrics import MetricsMode
from hms_iceberg.errors import CorruptDataFileError
from hms_iceberg.migration.hive.file_schemas import FileSchemaFacts, contradictions, examine, merge_mapped
from hms_iceberg.migration.hive.format_footers import ORC, SourceFooter, read_source_footer
from hms_iceberg.migration.hive.source import SourceFile, SourceTable
from hms_iceberg.migration.hive.source_reasons import partition_key
from hms_iceberg.migration.migration_progress import FOOTERS, Progress, in_threads
from hms_iceberg.spec.field_mapping import MappedField, NameMapping, create_name_mapping
from hms_iceberg.spec.manifests.manifest_values import DataFile
from hms_iceberg.spec.sort_orders import UNSORTED
from hms_iceberg.storage import Storage

_MAX_PROBLEMS = 10
_Key = tuple[SourceFile, tuple[Any, ...], str]


@dataclass(frozen=True)
class SourceFooters:
    """Facts from the footers of all files of a table."""

    data_files: tuple[DataFile, ...]  # the files as manifests hold them, in the order of the listing
    name_mapping: NameMapping  # the table's columns under every name that a file has for them
    # by field id, the kinds of timestamps in files: instants, local times, or both
    timestamps: dict[int, frozenset[str]]
    orc_timestamps: dict[int, frozenset[str]]  # the kinds in ORC files, which can be read as nothing else
    problems: tuple[str, ...]  # files that cannot be migrated, and why; at most ten
    hopeless: bool = False  # whether one of them cannot be read by Spark either, or would be misread


@dataclass(frozen=True)
class _Facts:
    """Facts that files of one schema share."""

    of_schema: FileSchemaFacts
    leaves: tuple[FileLeaf, ...]


class FooterReader:
    """Reads the footer of each file once, in threads; findings for a schema are shared by the files that have it."""

    def __init__(self, storage: Storage, source: SourceTable, modes: Mapping[int, MetricsMode]) -> None:
        self._storage = storage
        self._schema = source.schema
        self._modes = modes
        self._keys = frozenset(name.lower() for name in source.partition_columns)
        self._columns = source.schema.fields[: len(source.schema.fields) - len(self._keys)]
        self._avro_names = source.avro_names
        self._facts: dict[tuple[str, bytes, frozenset[str]], _Facts] = {}
        self._keys_in_files: set[str] = set()
        self._hopeless = False
        self._done: dict[_Key, DataFile] = {}
        self._lock = threading.Lock()

    def fits(self, source: SourceTable) -> bool:
        """Whether the footers that were read are still usable for this state of the table."""
        keys = frozenset(name.lower() for name in source.partition_columns)
        return self._schema == source.schema and self._keys == keys and self._avro_names == source.avro_names

    def read_all(
        self, source: SourceTable, files: Sequence[SourceFile], threads: int, progress: Progress
    ) -> SourceFooters:
        """Reads the footer of every file that was not read before."""
        data_files: list[DataFile] = []
        problems: list[str] = []
        read = in_threads(lambda file: self._read(file, source), files, threads)
        for done, (data_file, found) in enumerate(read, start=1):
            problems += found
            if data_file is not None:
                data_files.append(data_file)
            progress(FOOTERS, done, len(files))
            if len(problems) >= _MAX_PROBLEMS:
                break
        else:
            self._forget_all_but(source, files)
        mapping, doubled = self._name_mapping()
        problems += [f"the files have the name {name!r} for several columns of the table" for name in doubled]
        timestamps = self._timestamps(self._facts), self._timestamps(key for key in self._facts if key[0] == ORC)
        return SourceFooters(tuple(data_files), mapping, *timestamps, tuple(problems[:_MAX_PROBLEMS]), self._hopeless)

    def _read(self, file: SourceFile, source: SourceTable) -> tuple[DataFile | None, list[str]]:
        """One file as manifests hold it, or why it cannot be migrated."""
        partition, file_format = source.partition_values[file.partition], source.formats[file.partition]
        key = _key(file, source)
        known = self._done.get(key)
        if known is not None:
            return known, []
        try:
            footer = read_source_footer(self._storage, file.location, file_format)
            facts = self._facts_of(footer, file_format, file.location)
        except CorruptDataFileError as error:
            self._hopeless = True
            return None, [str(error)]
        self._hopeless |= footer.misread_by_spark
        problems = [*footer.problems, *facts.of_schema.problems]
        if problems:
            return None, [f"file {file.location} {problem}" for problem in problems]
        data_file = DataFile(
            sort_order_id=UNSORTED.order_id,
            file_path=file.location,
            file_format=file_format,
            partition=partition,
            record_count=footer.rows,
            file_size_in_bytes=file.size,
            split_offsets=footer.split_offsets,
            **footer.metrics(facts.leaves, self._schema, self._modes).as_fields(),
        )
        self._done[key] = data_file
        return data_file, []

    def _forget_all_but(self, source: SourceTable, files: Sequence[SourceFile]) -> None:
        """Keeps no more than the table has now, however often it is listed."""
        if len(self._done) > len(files):
            keys = {_key(file, source) for file in files}
            self._done = {key: data_file for key, data_file in self._done.items() if key in keys}

    def _facts_of(self, footer: SourceFooter, file_format: str, location: str) -> _Facts:
        schema = footer.schema
        key = (file_format, schema.serialize().to_pybytes(), footer.int96)
        found = self._facts.get(key)
        if found is None:
            facts = examine(self._columns, schema, footer.int96, file_format, self._avro_names)
            leaves = file_leaves(identified(schema, NameMapping(facts.mapped)))
            if footer.columns not in (0, len(leaves)) and not facts.problems:
                raise CorruptDataFileError(
                    f"Cannot read the footer of {location}: its schema has {len(leaves)} columns, its statistics "
                    f"{footer.columns}."
                )
            found = _Facts(facts, tuple(leaves))
            with self._lock:
                self._facts[key] = found
                self._keys_in_files.update(name.lower() for name in schema.names if name.lower() in self._keys)
        return found

    def _name_mapping(self) -> tuple[NameMapping, list[str]]:
        """The name mapping for the names of all files, and the names that stand for two columns. Partition columns have
        none: Hive takes their values from the partition, and so must Iceberg's readers."""
        own = create_name_mapping(self._schema).fields
        data = [
            own[: len(self._columns)],
            *(facts.of_schema.mapped for facts in self._facts.values() if not facts.of_schema.problems),
        ]
        merged = merge_mapped(data)
        keys: list[MappedField] = [
            mapped if mapped.names[0].lower() not in self._keys_in_files else replace(mapped, names=())
            for mapped in own[len(self._columns) :]
        ]
        return NameMapping((*merged, *keys)), list(contradictions(merged))

    def _timestamps(self, keys: Iterable[Any]) -> dict[int, frozenset[str]]:
        """For each timestamp column, the kinds of timestamps in files."""
        merged: dict[int, frozenset[str]] = {}
        for key in keys:
            for field_id, kind in self._facts[key].of_schema.timestamps.items():
                merged[field_id] = merged.get(field_id, frozenset()) | {kind}
        return merged


def _key(file: SourceFile, source: SourceTable) -> _Key:
    """The identity of a file: without the number of its partition, which may change between listings."""
    values = partition_key(source.partition_values[file.partition])
    return replace(file, partition=0), values, source.formats[file.partition]
