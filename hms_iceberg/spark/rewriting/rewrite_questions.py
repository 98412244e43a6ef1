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
    """Spark could not write a group (`GroupRewrites`)."""

    message: str


def may_rewrite(rewrites: OpenRewrites, asked: OfRewrite, question: Mapping[str, Any]) -> dict[str, Any]:
    """Whether to `go_on` with a group: no longer once the rewriting was stopped."""
    return {"go_on": not rewrites.of(question).is_stopped()}


def failed_rewrite(rewrites: OpenRewrites, asked: FailedRewrite, question: Mapping[str, Any]) -> None:
    """Takes note of a group that could not be written; raises what ends the rewriting."""
    rewrites.of(question).fail(asked.rewrite.group, asked.message)


def end_rewrite(rewrites: OpenRewrites, asked: OfRewrite, question: Mapping[str, Any]) -> dict[str, Any]:
    """Commits what is left of a rewriting; the answer has the `rows` of the procedure's result."""
    rows = rewrites.of(question).end()
    rewrites.close(question)
    return {"rows": list(rows)}


def abandon_rewrite(rewrites: OpenRewrites, asked: OfRewrite, question: Mapping[str, Any]) -> None:
    """Deletes the files that are written and not committed."""
    run = rewrites.of(question)
    rewrites.close(question)
    run.abandon()
