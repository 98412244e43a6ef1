"""Requests that are repeated with their key, also after the process that had the first of them has died."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from hms_iceberg.rest.access import ANYBODY, Access, Caller, everything
from hms_iceberg.rest.errors import RefusedError
from hms_iceberg.rest.serving.calls import Answer, Call
from hms_iceberg.rest.serving.idempotency import IdempotentRequests

KEY = "0190a5d2-9d4b-7c3e-8f21-0123456789ab"
DIES = """
import os, sys
from tests.unit.rest.test_idempotency import KEY, call
from hms_iceberg.rest.serving.idempotency import IdempotentRequests
IdempotentRequests(60, sys.argv[1]).once(KEY, "POST", "/p", call(b"body"), lambda: os._exit(7))
"""


def call(body: bytes, caller: Caller = ANYBODY) -> Call:
    return Call({}, {}, {}, body, Access(caller, everything))


def test_a_request_whose_process_died_over_it_is_done_by_another_one(tmp_path: Path) -> None:
    died = subprocess.run([sys.executable, "-c", DIES, str(tmp_path)], cwd=Path(__file__).parents[3])
    assert died.returncode == 7
    requests, done = IdempotentRequests(60, str(tmp_path)), []
    with pytest.raises(RefusedError, match="another request"):
        requests.once(KEY, "POST", "/p", call(b"other"), lambda: Answer({"number": 0}))
    for _ in range(2):
        answer = requests.once(
            KEY, "POST", "/p", call(b"body"), lambda: done.append(1) or Answer({"number": len(done)})
        )
        assert answer.encoded() == b'{"number":1}'
    requests.close()


def test_a_key_of_one_caller_tells_another_one_nothing(tmp_path: Path) -> None:
    requests = IdempotentRequests(60, str(tmp_path))
    for name in ("alice", "bob", f"alice\n{KEY}"):
        asked = call(b"body", Caller(name))
        answers = [requests.once(KEY, "POST", "/p", asked, lambda: Answer({"of": name})) for _ in range(2)]  # noqa: B023
        assert [answer.encoded() for answer in answers] == [Answer({"of": name}).encoded()] * 2
    requests.close()
