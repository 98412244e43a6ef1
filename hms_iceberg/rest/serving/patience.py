"""How long a connection may take to say what it wants: uvicorn itself waits for the head of a request for ever."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol as HttpProtocol
else:
    from uvicorn.protocols.http.auto import AutoHTTPProtocol as HttpProtocol


class PatientProtocol(HttpProtocol):
    """uvicorn's protocol of HTTP, which closes connections that do not send the head of a request in time."""

    _deadline: asyncio.TimerHandle | None = None

    def __init__(self, *given: Any, head_seconds: float, **named: Any) -> None:
        super().__init__(*given, **named)
        self._head_seconds = head_seconds

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._mind()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._mind()

    def connection_lost(self, exc: Exception | None) -> None:
        self._forget()
        super().connection_lost(exc)

    def _mind(self) -> None:
        if not self._is_silent():
            self._forget()
        elif self._deadline is None:
            self._deadline = self.loop.call_later(self._head_seconds, self._give_up)

    def _give_up(self) -> None:
        self._deadline = None
        if self._is_silent() and not self.transport.is_closing():
            self.transport.close()

    def _forget(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _is_silent(self) -> bool:
        return self.cycle is None or self.cycle.response_complete


def protocol(head_seconds: float) -> type[asyncio.Protocol]:
    """A protocol with its patience, which can be pickled for processes of workers.

    Args:
        head_seconds: how long a head may take, from its first byte, or from the start of the connection.
    """
    return cast("type[asyncio.Protocol]", partial(PatientProtocol, head_seconds=head_seconds))
