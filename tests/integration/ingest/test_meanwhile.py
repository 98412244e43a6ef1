"""What happens to tables and topics while an ingest is at work on them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import pyarrow as pa
import pytest

from hms_iceberg.catalog import Catalog
from hms_iceberg.errors import EventsLostError, IcebergError
from hms_iceberg.ingest import source
from hms_iceberg.ingest.ingest import Ingest
from hms_iceberg.ingest.routing import TableTemplate
from hms_iceberg.ingest.settings import BatchReport, Settings
from hms_iceberg.ingest.table_rows import Rules
from hms_iceberg.spec.data_types import StringType
from hms_iceberg.table import Table
from tests.support.kafka import KafkaBroker, json_event


@dataclass
class Watching:
    """Does something once, when a batch has an event at hand; knows what failed, and tells of batches."""

    then: Callable[[], object] = lambda: None
    failures: list[IcebergError] = field(default_factory=list)
    batches: list[BatchReport] = field(default_factory=list)
    committed: threading.Event = field(default_factory=threading.Event)
    failed: threading.Event = field(default_factory=threading.Event)

    def batch(self, report: BatchReport) -> None:
        self.batches.append(report)
        self.committed.set()

    def reading(self, lag: int, at_hand: int) -> None:
        if at_hand:
            then, self.then = self.then, lambda: None
            then()

    def failure(self, error: IcebergError) -> None:
        self.failures.append(error)
        self.failed.set()


@pytest.fixture
def settings(kafka: KafkaBroker, namespace: str) -> Settings:
    return Settings(
        topics=(kafka.create_topic(),),
        table=TableTemplate(f"{namespace}.t"),
        name="reader",
        kafka={"bootstrap.servers": kafka.address},
        format="json",
        rules=Rules(keys=("id",)),
        create=True,
        every_seconds=3600,
        max_rows=2,
    )


@contextmanager
def at_work(catalog: Catalog, settings: Settings, watching: Watching) -> Iterator[None]:
    stop = threading.Event()
    thread = threading.Thread(target=lambda: Ingest(catalog, settings, watching, stop).run())
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def table_of(catalog: Catalog, namespace: str) -> Table:
    return catalog.create_table(f"{namespace}.t", pa.schema([("id", pa.int64()), ("_operation", pa.string())]))


def test_columns_that_are_changed_while_a_batch_is_collected_are_met_by_reading_it_again(
    catalog: Catalog, namespace: str, kafka: KafkaBroker, settings: Settings
) -> None:
    table = table_of(catalog, namespace)
    first, second = ({"id": each, "_operation": "x"} for each in (1, 2))
    kafka.send(settings.topics[0], [json_event(first)])

    def then() -> None:
        table.update_schema().add_column("more", StringType()).commit()
        kafka.send(settings.topics[0], [json_event(second)])

    watching = Watching(then)
    with at_work(catalog, settings, watching):
        assert watching.committed.wait(60)
    assert "columns" in str(watching.failures[0])
    found = table.refresh().scan().to_arrow().sort_by("id").to_pylist()
    assert found == [{**each, "more": None} for each in (first, second)]


def test_a_table_that_is_dropped_while_a_batch_is_collected_is_made_anew_with_all_events(
    catalog: Catalog, namespace: str, kafka: KafkaBroker, settings: Settings
) -> None:
    kafka.send(settings.topics[0], [json_event({"id": 1})])
    Ingest(catalog, settings, Watching(), threading.Event()).run(once=True)
    kafka.send(settings.topics[0], [json_event({"id": 2})])

    def then() -> None:
        catalog.drop_table(f"{namespace}.t")
        kafka.send(settings.topics[0], [json_event({"id": 3})])

    watching = Watching(then)
    with at_work(catalog, settings, watching):
        assert watching.committed.wait(60)
    assert "dropped meanwhile" in str(watching.failures[0])
    assert sorted(catalog.load_table(f"{namespace}.t").scan().to_arrow()["id"].to_pylist()) == [1, 2, 3]


def test_foreign_commits_while_a_batch_is_collected_stay(
    catalog: Catalog, namespace: str, kafka: KafkaBroker, settings: Settings
) -> None:
    table = table_of(catalog, namespace)
    kafka.send(settings.topics[0], [json_event({"id": 1})])

    def then() -> None:
        table.append(pa.table({"id": [1, 9]}))
        kafka.send(settings.topics[0], [json_event({"id": 2})])

    watching = Watching(then)
    with at_work(catalog, settings, watching):
        assert watching.committed.wait(60)
    assert sorted(table.refresh().scan().to_arrow()["id"].to_pylist()) == [1, 2, 9]


def test_events_that_another_process_of_the_name_applies_while_they_are_at_hand_are_not_applied_again(
    catalog: Catalog, namespace: str, kafka: KafkaBroker, settings: Settings
) -> None:
    work = replace(settings, rules=Rules())  # rows are appended, so that what is repeated is seen
    kafka.send(settings.topics[0], [json_event({"id": 1})])

    def then() -> None:
        Ingest(catalog, work, Watching(), threading.Event()).run(once=True)
        kafka.send(settings.topics[0], [json_event({"id": 2})])

    watching = Watching(then)
    with at_work(catalog, work, watching):
        assert watching.failed.wait(60)
    Ingest(catalog, work, Watching(), threading.Event()).run(once=True)
    assert "another process of this name" in str(watching.failures[0])
    assert sorted(catalog.load_table(f"{namespace}.t").scan().to_arrow()["id"].to_pylist()) == [1, 2]


def test_partitions_that_a_topic_gets_are_read_without_a_restart(
    catalog: Catalog, namespace: str, kafka: KafkaBroker, settings: Settings
) -> None:
    watching = Watching()
    with at_work(catalog, replace(settings, every_seconds=0.2, look_for_partitions_seconds=0.0), watching):
        kafka.add_partitions(settings.topics[0], 2)
        kafka.send(settings.topics[0], [json_event({"id": 1})], partition=1)
        assert watching.committed.wait(60)
    assert catalog.load_table(f"{namespace}.t").scan().to_arrow()["id"].to_pylist() == [1]


def test_a_broker_that_goes_away_is_a_failure_until_it_is_back_and_no_silence(
    catalog: Catalog,
    namespace: str,
    settings: Settings,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> None:
    monkeypatch.setattr(source, "_ASK_SECONDS", 1.0)
    broker = KafkaBroker(tmp_path)
    request.addfinalizer(broker.stop)
    broker.start()
    broker.send(broker.create_topic(name="going"), [json_event({"id": 1})])
    work = replace(settings, topics=("going",), kafka={"bootstrap.servers": broker.address})
    watching = Watching(broker.stop)
    with at_work(catalog, work, watching):
        assert watching.failed.wait(60)
        assert "Kafka does not answer" in str(watching.failures[0])
        broker.start()
        broker.send("going", [json_event({"id": 2})])
        assert watching.committed.wait(60)
    assert sorted(catalog.load_table(f"{namespace}.t").scan().to_arrow()["id"].to_pylist()) == [1, 2]


def test_a_topic_that_is_made_anew_while_its_events_are_at_hand_ends_the_work_and_nothing_is_written(
    catalog: Catalog, namespace: str, kafka: KafkaBroker, settings: Settings
) -> None:
    topic = settings.topics[0]
    kafka.send(topic, [json_event({"id": 1})])

    def then() -> None:
        kafka.delete_topic(topic)
        kafka.create_topic(name=topic)
        kafka.send(topic, [json_event({"id": each}) for each in (7, 8, 9)])

    work = replace(settings, rules=Rules(), every_seconds=1)
    with pytest.raises(EventsLostError, match=f"topic {topic} from before it was deleted and made anew"):
        Ingest(catalog, work, Watching(then), threading.Event()).run()
    assert catalog.load_table(f"{namespace}.t").current_snapshot() is None


def test_tables_without_events_get_the_offsets_of_the_others_while_the_work_goes_on(
    catalog: Catalog, namespace: str, kafka: KafkaBroker, settings: Settings
) -> None:
    topic, work = settings.topics[0], replace(settings, table=TableTemplate(f"{namespace}.{{to}}"), every_seconds=0.2)
    kafka.send(topic, [json_event({"id": 1, "to": each}) for each in ("a", "b")])
    watching = Watching()
    with at_work(catalog, replace(work, quiet_seconds=0.5), watching):
        assert watching.committed.wait(60)
        watching.committed.clear()
        kafka.send(topic, [json_event({"id": 2, "to": "a"})])
        quiet = catalog.load_table(f"{namespace}.b")
        while quiet.refresh().applied_offsets("reader") != {f"{topic}-0": 3}:
            assert watching.committed.wait(60)
    assert not watching.failures and quiet.scan().count() == 1


def test_a_truncate_of_a_table_that_is_not_there_has_nothing_to_do(
    catalog: Catalog, namespace: str, kafka: KafkaBroker, settings: Settings
) -> None:
    kafka.send(settings.topics[0], [json_event({"op": "truncate"}), json_event({"id": 1, "op": "insert"})])
    work = replace(settings, operation_column="op")
    Ingest(catalog, work, Watching(), threading.Event()).run(once=True)
    assert catalog.load_table(f"{namespace}.t").scan().to_arrow()["id"].to_pylist() == [1]
