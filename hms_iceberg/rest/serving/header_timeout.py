"""A time limit for the head of a request, for which uvicorn itself waits for ever."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol as HttpProtocol
else:
    from uvicorn.protocols.http.auto import AutoHTTPProtocol as HttpProtocol


class HeaderTimeoutProtocol(HttpProtocol):
    """uvicorn's HTTP protocol, which closes connections that do not send the head of a request in time."""

    _deadline: asyncio.TimerHandle | None = None

    def __init__(self, *given: Any, head_seconds: float, **named: Any) -> None:
        super().__init__(*given, **named)
        self._head_seconds = head_seconds

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._update_deadline()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._update_deadline()

    def connection_lost(self, exc: Exception | None) -> None:
        self._cancel_deadline()
        super().connection_lost(exc)

    def _update_deadline(self) -> None:
        if not self._waits_for_request():
            self._cancel_deadline()
        elif self._deadline is None:
            self._deadline = self.loop.call_later(self._head_seconds, self._close_if_waiting)

    def _close_if_waiting(self) -> None:
        self._deadline = None
        if self._waits_for_request() and not self.transport.is_closing():
            self.transport.close()

    def _cancel_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _waits_for_request(self) -> bool:
        return self.cycle is None or self.cycle.response_complete


def protocol(head_seconds: float) -> type[asyncio.Protocol]:
    """A protocol with a time limit in seconds, from the first byte of a head or the start of the connection; it can
    be pickled for worker processes."""
    return cast("type[asyncio.Protocol]", partial(HeaderTimeoutProtocol, head_seconds=head_seconds))
