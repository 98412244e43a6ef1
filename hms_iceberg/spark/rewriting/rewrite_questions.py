"""The questions about a rewriting that Spark carries out, each with the class of the bridge that asks it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from hms_iceberg.spark.rewriting.runs import OpenRewrites


class GroupOfRun(msgspec.Struct, frozen=True):
    """A group of files, by the number of its rewriting and its own."""

    run: int
    group: int = -1


class OfRewrite(msgspec.Struct, frozen=True):
    """A question about a rewriting, or about one group of it (`GroupRewrites`)."""

    rewrite: GroupOfRun


class FailedRewrite(OfRewrite, frozen=True):
    """Spark could not write a group (`GroupRewrites`).

    Args:
        message: its error.
    """

    message: str


def may_rewrite(rewrites: OpenRewrites, asked: OfRewrite, question: Mapping[str, Any]) -> dict[str, Any]:
    """Tells whether a group is to be begun.

    Args:
        rewrites: the rewritings that are under way.
        asked: number of the rewriting and of the group.
        question: the question as it came.

    Returns:
        `go_on`; false once the rewriting was stopped.
    """
    return {"go_on": not rewrites.of(question).is_stopped()}


def failed_rewrite(rewrites: OpenRewrites, asked: FailedRewrite, question: Mapping[str, Any]) -> None:
    """Takes note of a group that could not be written.

    Args:
        rewrites: the rewritings that are under way.
        asked: number of the rewriting and of the group, and the error.
        question: the question as it came.

    Raises:
        IcebergError: it ends the rewriting.
    """
    rewrites.of(question).fail(asked.rewrite.group, asked.message)


def end_rewrite(rewrites: OpenRewrites, asked: OfRewrite, question: Mapping[str, Any]) -> dict[str, Any]:
    """Commits what is left of a rewriting.

    Args:
        rewrites: the rewritings that are under way.
        asked: number of the rewriting.
        question: the question as it came.

    Returns:
        the `rows` of the procedure's result.

    Raises:
        IcebergError: as of `rewrite_data_files`.
    """
    rows = rewrites.of(question).end()
    rewrites.close(question)
    return {"rows": list(rows)}


def abandon_rewrite(rewrites: OpenRewrites, asked: OfRewrite, question: Mapping[str, Any]) -> None:
    """Deletes what is written and not committed.

    Args:
        rewrites: the rewritings that are under way.
        asked: number of the rewriting.
        question: the question as it came.
    """
    run = rewrites.of(question)
    rewrites.close(question)
    run.abandon()
