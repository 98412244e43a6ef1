"""Events of topics from Kafka: from where tables have got to, partition by partition, and never with a silent jump."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from hms_iceberg.errors import ConfigurationError, EventsLostError, IngestError, MissingDependencyError
from hms_iceberg.ingest.records import Partition, Record

logger = logging.getLogger(__name__)

_ASK_SECONDS = 30.0
_MOST_AT_ONCE = 1_000
_NO_ID = "AAAAAAAAAAAAAAAAAAAAAA"  # what brokers without ids of topics say: sixteen zeros in Base64
_OWN_SETTINGS = ("auto.offset.reset", "enable.auto.commit", "enable.auto.offset.store", "enable.partition.eof")


class KafkaSource:
    """Partitions of topics, read in the order of their offsets; this object decides where, and no consumer group does.
    What the client reads ahead is bounded: events that nobody takes stay with the broker."""

    def __init__(self, topics: Sequence[str], settings: Mapping[str, str], read_ahead_bytes: int) -> None:
        """Connects, by settings of librdkafka (`bootstrap.servers`); the client fetches up to `read_ahead_bytes` before
        it is asked."""
        client = _client()
        for name in _OWN_SETTINGS:
            if name in settings:
                raise ConfigurationError(f"Kafka's setting {name} cannot be given: where to read, the tables say.")
        if not settings.get("bootstrap.servers"):
            raise ConfigurationError("Name a broker, such as kafka:9092.")
        kilobytes = max(1, min(read_ahead_bytes // 1024, 2_097_151))
        own = {
            "group.id": "hms-iceberg-ingest",  # is asked for, and not used: partitions are assigned by hand
            "queued.max.messages.kbytes": kilobytes,
            "logger": logging.getLogger(f"{__name__}.client"),
            **settings,
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            "enable.partition.eof": True,
            "auto.offset.reset": "error",
            "error_cb": self._on_error,
        }
        self._topics = tuple(topics)
        self._client = client
        self._ends: dict[Partition, int] = {}
        self._highs: dict[Partition, int] = {}
        self._down = ""  # why no broker can be reached; empty while one can
        self._why = ""  # what the client told last of certificates and passwords that were refused
        try:
            self._consumer = client.Consumer(own)
            self._admin = _admin(client, settings)
        except (client.KafkaException, ValueError, TypeError) as error:
            raise ConfigurationError(f"Kafka's client refuses its settings: {_message(error)}") from error

    def close(self) -> None:
        self._consumer.close()

    def partitions(self) -> list[Partition]:
        """The partitions of all topics; an IngestError if one does not exist, or the broker does not answer."""
        found: list[Partition] = []
        for topic in self._topics:
            metadata = self._ask(lambda topic=topic: self._consumer.list_topics(topic, _ASK_SECONDS)).topics[topic]
            if metadata.error is not None:
                raise IngestError(f"Topic {topic} cannot be read: {metadata.error.str()}")
            found += [(topic, number) for number in sorted(metadata.partitions)]
        return found

    def topic_ids(self) -> dict[str, str]:
        """The id of each topic, another one once the topic is made anew; brokers before Kafka 2.8 have none. An
        IngestError if a topic does not exist, or the broker does not answer."""
        asked = self._client.TopicCollection(list(self._topics))
        told = self._ask(lambda: self._admin.describe_topics(asked, request_timeout=_ASK_SECONDS))
        ids = {topic: str(self._ask(found.result).topic_id) for topic, found in told.items()}
        return {topic: each for topic, each in ids.items() if each != _NO_ID}

    def bounds(self, partition: Partition) -> tuple[int, int]:
        """The first offset that the broker has, and the one behind the last."""
        of = self._client.TopicPartition(*partition)
        low, high = self._ask(lambda: self._consumer.get_watermark_offsets(of, timeout=_ASK_SECONDS, cached=False))
        self._highs[partition] = high
        return low, high

    def start(self, positions: Mapping[Partition, int]) -> None:
        """Reads on from these offsets; what was read ahead of others is forgotten."""
        of = [self._client.TopicPartition(*partition, offset) for partition, offset in positions.items()]
        self._ends = {}
        self._ask(lambda: self._consumer.assign(of))

    def read(self, seconds: float) -> Iterator[Record]:
        """The events that come within a time, and not more than some at once; an EventsLostError if the broker has
        deleted the next ones, an IngestError if it does not answer."""
        messages = self._ask(lambda: self._consumer.consume(_MOST_AT_ONCE, seconds))
        if self._down and not messages:
            raise IngestError(f"Kafka does not answer: {self._down}")
        self._down = ""
        for message in messages:
            error = message.error()
            if error is None:
                yield _record(message, self._client)
            elif error.code() == self._client.KafkaError._PARTITION_EOF:
                self._ends[(message.topic(), message.partition())] = message.offset()
            elif error.code() == self._client.KafkaError._AUTO_OFFSET_RESET:
                raise EventsLostError(
                    f"The broker has no event at the offset that comes next in topic {message.topic()}, partition "
                    f"{message.partition()}: {error.str()}"
                )
            elif error.fatal() or not error.retriable():
                raise IngestError(f"Kafka gives no events: {error.str()}")
            else:
                logger.warning("Kafka: %s", error.str())

    def reached_end(self, partition: Partition) -> int:
        """The last offset at which a partition had no more events; 0 if it always had. It may be behind markers of
        transactions, which are no events."""
        return self._ends.get(partition, 0)

    def lag(self, partition: Partition, position: int) -> int:
        """How many offsets a partition has behind a position, as far as the broker has told."""
        _, told = self._consumer.get_watermark_offsets(self._client.TopicPartition(*partition), cached=True)
        return max(0, max(told, self._highs.get(partition, 0)) - position)

    def _ask(self, ask: Any) -> Any:
        try:
            return ask()
        except self._client.KafkaException as error:
            self._consumer.poll(0)  # has the client tell why
            why = self._why or "Are the broker's address and security.protocol right, and is it up?"
            raise IngestError(f"Kafka does not answer: {_message(error)}. {why}") from error

    def _on_error(self, error: Any) -> None:
        logger.warning("Kafka: %s", error.str())
        if error.code() in (self._client.KafkaError._SSL, self._client.KafkaError._AUTHENTICATION):
            self._why = error.str()
        if error.code() == self._client.KafkaError._ALL_BROKERS_DOWN:
            self._down = error.str()


def _client() -> Any:
    try:
        import confluent_kafka
    except ImportError as error:
        raise MissingDependencyError(
            "Events of Kafka need confluent-kafka: pip install 'hms_iceberg[ingest]'"
        ) from error
    return confluent_kafka


def _admin(client: Any, settings: Mapping[str, str]) -> Any:
    """A client that tells of topics; it warns of no settings that are the consumer's alone."""
    from confluent_kafka.admin import AdminClient

    own: dict[str, Any] = {"logger": logging.getLogger(f"{__name__}.client"), **settings, "log_level": 3}
    return AdminClient(own)


def _record(message: Any, client: Any) -> Record:
    kind, timestamp = message.timestamp()
    return Record(
        message.topic(),
        message.partition(),
        message.offset(),
        message.key(),
        message.value(),
        None if kind == client.TIMESTAMP_NOT_AVAILABLE else timestamp,
        tuple(message.headers() or ()),
    )


def _message(error: Exception) -> str:
    first = error.args[0] if error.args else error
    return first.str() if hasattr(first, "str") else str(first)
