"""PyIceberg's files on the HDFS of the run's warehouse, by the file system of hdfs-native, not by ours."""

from __future__ import annotations

from hdfs_native.fsspec import HdfsFileSystem
from pyarrow.fs import FileSystem, FSSpecHandler, PyFileSystem
from pyiceberg.io.pyarrow import PyArrowFileIO


class HdfsIO(PyArrowFileIO):
    """PyIceberg's own way is libhdfs, which needs a Hadoop installation."""

    def _initialize_hdfs_fs(self, scheme: str, netloc: str | None) -> FileSystem:
        return PyFileSystem(FSSpecHandler(HdfsFileSystem(netloc)))
