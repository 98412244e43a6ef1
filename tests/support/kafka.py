"""A real Kafka broker in one JVM (KRaft), whose jars Maven fetches, and topics on it."""

from __future__ import annotations

import base64
import json
import logging
import shutil
import socket
import subprocess
import time
import uuid
from collections.abc import Iterable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from tests.support.maven import Artifact, UnavailableError, fetched
from tests.support.ports import free_port
from tests.support.started_server import ends_with_owner
from tests.support.tls_front import Certificates

_KAFKA = Artifact("org.apache.kafka", "kafka_2.13", "4.1.0")
# Sixteen bytes in Base64; random ones may begin with a dash, which would be an option.
_CLUSTER = base64.urlsafe_b64encode(b"hms-iceberg-test").decode().rstrip("=")
_START_SECONDS = 180
_JVM = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx384m")

USER, PASSWORD = "reader", "the reader's own"

Event = tuple[bytes | None, bytes | None]
"""The key and the value of an event."""


class KafkaBroker:
    """A broker that is its own controller, on ports that were free."""

    def __init__(self, folder: Path, certificates: Certificates | None = None) -> None:
        """`certificates` gives it a second listener, of TLS and SASL's PLAIN, which knows `USER`."""
        self._folder = folder
        self._jars = fetched("kafka-4.1.0", (_KAFKA,))
        self._port, self._controller, self._secure_port = (free_port() for _ in range(3))
        self._certificates = certificates
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self._port}"

    @property
    def authority(self) -> Path:
        """The certificate that vouches for the broker's own."""
        assert self._certificates is not None
        return self._certificates.ca

    @property
    def secure_address(self) -> str:
        return f"localhost:{self._secure_port}"

    def start(self) -> None:
        """Formats its storage, unless it had been started before, and waits until it answers."""
        java = shutil.which("java")
        if java is None:
            raise UnavailableError("Kafka needs Java")
        settings = self._folder / "server.properties"
        settings.write_text(self._settings())
        run = [java, *_JVM, "-cp", f"{self._jars}/*"]
        words = ["kafka.tools.StorageTool", "format", "--standalone", "-t", _CLUSTER, "-c", str(settings)]
        if not (self._folder / "data").exists():
            subprocess.run([*run, *words], check=True, capture_output=True, timeout=_START_SECONDS)
        with open(self._folder / "server.log", "wb") as log:
            self._process = subprocess.Popen(
                ends_with_owner(*run, "kafka.Kafka", str(settings)), stdout=log, stderr=log
            )
        deadline = time.monotonic() + _START_SECONDS
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.stop()
                raise UnavailableError(f"Kafka does not start: {(self._folder / 'server.log').read_text()[-2000:]}")
            time.sleep(0.05)

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def _answers(self) -> bool:
        with socket.socket() as client:
            if client.connect_ex(("127.0.0.1", self._port)):
                return False
        from confluent_kafka import KafkaException

        try:
            return bool(self._admin.list_topics(timeout=5).brokers)
        except KafkaException:
            return False

    def _settings(self) -> str:
        return "\n".join(
            f"{name}={value}"
            for name, value in {
                "process.roles": "broker,controller",
                "node.id": 1,
                "controller.quorum.bootstrap.servers": f"127.0.0.1:{self._controller}",
                "listeners": f"PLAINTEXT://{self.address},CONTROLLER://127.0.0.1:{self._controller}",
                "advertised.listeners": f"PLAINTEXT://{self.address}",
                "controller.listener.names": "CONTROLLER",
                "log.dirs": self._folder / "data",
                "auto.create.topics.enable": "false",
                "offsets.topic.replication.factor": 1,
                "transaction.state.log.replication.factor": 1,
                "transaction.state.log.min.isr": 1,
                "transaction.state.log.num.partitions": 1,
                **self._secure_settings(),
            }.items()
        )

    def _secure_settings(self) -> dict[str, str]:
        if self._certificates is None:
            return {}
        keys = self._folder / "keys.pem"
        certificate, key = self._certificates.of("localhost")
        keys.write_text(key.read_text() + certificate.read_text())
        login = "org.apache.kafka.common.security.plain.PlainLoginModule required"
        plain = f"PLAINTEXT://{self.address},CONTROLLER://127.0.0.1:{self._controller}"
        return {
            "listeners": f"SASL_SSL://{self.secure_address},{plain}",
            "advertised.listeners": f"PLAINTEXT://{self.address},SASL_SSL://{self.secure_address}",
            "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SASL_SSL:SASL_SSL",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(keys),
            "sasl.enabled.mechanisms": "PLAIN",
            "listener.name.sasl_ssl.plain.sasl.jaas.config": f'{login} user_{USER}="{PASSWORD}";',
        }

    # ------------------------------------------------------------------------------------------- topics

    @cached_property
    def _admin(self) -> Any:
        from confluent_kafka.admin import AdminClient

        return AdminClient({"bootstrap.servers": self.address, "logger": logging.getLogger(__name__)})

    def create_topic(self, partitions: int = 1, name: str | None = None) -> str:
        """Makes a topic, of a name that no other has unless one is given, and returns its name."""
        from confluent_kafka.admin import NewTopic

        topic = name or f"topic-{uuid.uuid4().hex[:12]}"
        self._admin.create_topics([NewTopic(topic, partitions, 1)])[topic].result(30)
        return topic

    def delete_topic(self, topic: str) -> None:
        self._admin.delete_topics([topic])[topic].result(30)

    def add_partitions(self, topic: str, count: int) -> None:
        from confluent_kafka.admin import NewPartitions

        self._admin.create_partitions([NewPartitions(topic, count)])[topic].result(30)
        end = time.monotonic() + 30
        while not self._has_partitions(topic, count):  # the broker tells of them a moment later
            assert time.monotonic() < end
            time.sleep(0.05)

    def _has_partitions(self, topic: str, count: int) -> bool:
        partitions = self._admin.list_topics(topic, 30).topics[topic].partitions
        return len(partitions) == count and all(each.leader >= 0 for each in partitions.values())

    def delete_events(self, topic: str, partition: int, before: int) -> None:
        """Deletes a partition's events before an offset, as retention does."""
        from confluent_kafka import TopicPartition

        of = TopicPartition(topic, partition, before)
        for each in self._admin.delete_records([of]).values():
            each.result(30)

    def send(
        self,
        topic: str,
        events: Iterable[Event],
        partition: int = 0,
        headers: list[tuple[str, bytes]] | None = None,
        settings: Mapping[str, str] | None = None,
        is_aborted: bool = False,
    ) -> None:
        """Sends events to a partition, in their order; with a `transactional.id` as one transaction."""
        from confluent_kafka import Producer

        own = {"linger.ms": 0, "logger": logging.getLogger(__name__), **(settings or {})}
        producer = Producer({"bootstrap.servers": self.address, **own})
        is_transaction, failed = "transactional.id" in own, list[Any]()

        def delivered(error: Any, _message: Any) -> None:
            if error is not None:
                failed.append(error)

        if is_transaction:
            producer.init_transactions(30)
            producer.begin_transaction()
        for key, value in events:
            while True:
                try:
                    producer.produce(topic, value, key, partition, headers=headers, on_delivery=delivered)
                    break
                except BufferError:
                    producer.poll(0.1)
        assert producer.flush(60) == 0 and not failed, failed
        if is_transaction:
            (producer.abort_transaction if is_aborted else producer.commit_transaction)(30)


def json_event(value: object, key: object = None) -> Event:
    """An event of JSON."""
    return (None if key is None else json.dumps(key).encode(), None if value is None else json.dumps(value).encode())


def debezium(op: str, before: object, after: object, table: str = "orders", **source: object) -> dict[str, object]:
    """The value of an event of Debezium, without its schema."""
    return {"before": before, "after": after, "op": op, "source": {"table": table, **source}, "ts_ms": 0}
