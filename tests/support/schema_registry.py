"""A schema registry on loopback that speaks as much of Confluent's protocol as its clients ask for.

Confluent's own is not in Maven Central. This one is a real server for the real client: it registers schemas, with
references, and gives them by number and by subject and version.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BytesIO
from typing import Any

import fastavro


@dataclass
class SchemaRegistry:
    """The schemas by number and by subject."""

    url: str = ""
    _schemas: list[dict[str, Any]] = field(default_factory=list)
    _subjects: dict[str, list[int]] = field(default_factory=dict)

    def register(
        self, subject: str, schema: Any, references: Sequence[Mapping[str, Any]] = (), kind: str = "AVRO"
    ) -> int:
        """Adds a version of a subject, and returns the schema's number."""
        told = {"schema": json.dumps(schema), "references": list(references)}
        self._schemas.append(told if kind == "AVRO" else {**told, "schemaType": kind})
        self._subjects.setdefault(subject, []).append(len(self._schemas))
        return len(self._schemas)

    def answer(self, path: str) -> dict[str, Any] | None:
        """What the protocol says to a path; None if there is nothing."""
        words = path.partition("?")[0].strip("/").split("/")
        if words[:2] == ["schemas", "ids"]:
            number = int(words[2])
            return self._schemas[number - 1] if number <= len(self._schemas) else None
        if words[0] == "subjects" and words[2] == "versions":
            number = self._subjects[words[1]][int(words[3]) - 1]
            return {"subject": words[1], "version": int(words[3]), "id": number, **self._schemas[number - 1]}
        return None


def avro_event(number: int, schema: Any, value: Any, named: Mapping[str, Any] | None = None) -> bytes:
    """A value as the registry's serializers frame it."""
    stream = BytesIO()
    fastavro.schemaless_writer(stream, fastavro.parse_schema(schema, dict(named or {})), value)
    return b"\x00" + number.to_bytes(4, "big") + stream.getvalue()


@contextmanager
def schema_registry() -> Iterator[SchemaRegistry]:
    """A registry that runs."""
    registry = SchemaRegistry()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            found = registry.answer(self.path)
            body = json.dumps(found or {"error_code": 40403, "message": "Schema not found"}).encode()
            self.send_response(200 if found else 404)
            self.send_header("Content-Type", "application/vnd.schemaregistry.v1+json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    registry.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield registry
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
