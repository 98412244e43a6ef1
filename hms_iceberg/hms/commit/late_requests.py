"""A request whose answer was lost may still be carried out: how long it is watched."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator

logger = logging.getLogger(__name__)

# Seconds before each look; a server that lost a connection is over with its request by the last.
_LOOKS = (0.0, 0.1, 0.3, 0.6, 1.0, 2.0)
_LATE_SECONDS = 30.0


def looks(what: str, compares: bool) -> Iterator[None]:
    """The pauses between looks at what a request whose answer was lost has done.

    If the server does not compare, a request that arrives late would undo what others commit meanwhile. So the
    caller, and with it the lock that it holds, waits for longer there.

    Args:
        what: the table, for the log.
        compares: whether the server refuses the request once somebody else has committed.
    """
    began = time.monotonic()
    for pause in _LOOKS:
        time.sleep(pause)
        yield
    if compares:
        return
    logger.warning("The lock on %s is kept for up to %.0f s, as a request may arrive late", what, _LATE_SECONDS)
    while time.monotonic() - began < _LATE_SECONDS:
        time.sleep(_LOOKS[-1])
        yield
