"""Every step of a commit x every operation x every mode x every fault: what is reported is true, and nothing is lost.

Steps are found by an unharmed run, so that none is forgotten. A test run takes a sample of the matrix, another one
for every commit; HMS_ICEBERG_TESTS=all takes all of it.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from hms_iceberg.catalog import Catalog, load_catalog
from hms_iceberg.errors import CommitFailedError, CommitStateUnknownError, MetastoreUnavailableError
from hms_iceberg.hms.commit.lease import HiveLease
from hms_iceberg.hms.connection import answers
from hms_iceberg.hms.embedded import EmbeddedMetastore
from hms_iceberg.hms.hive_metastore import HiveMetastore
from hms_iceberg.hms.locking import table_lock
from hms_iceberg.table.file_system_metastore import FileSystemLease
from tests.support.commit_operations import MODES, OPERATIONS, OTHERS, Operation, find_out_capability, outcome
from tests.support.commit_victims import Victims
from tests.support.failing_steps import CALLS, KINDS, STORAGE, Steps
from tests.support.hdfs_path import pyiceberg_files
from tests.support.spread import ALL, SEED
from tests.support.thrift_proxy import Fault, ThriftProxy

pytestmark = pytest.mark.slow
logger = logging.getLogger(__name__)


CHANGES = ("alter_table_with_environment_context", "create_table")
LOST = (Fault.DROP_REQUEST, Fault.LATE_REQUEST)
SIMPLE_MODES = ["lock", "compare-and-swap"]
CLIENT = {"hive.metastore.client.connect.retry.delay": "10ms"}
IMPATIENT = 3.0
Record = Callable[[str, object], None]
# A table that was read a moment ago is not read again before the first attempt: one call less.
READ = {"just read": 600.0, "read long ago": 0.0}


@pytest.fixture(autouse=True)
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "_LOOKS", (0.0, 0.02, 0.05))
    monkeypatch.setattr(answers, "_LATE_SECONDS", 1.0)


@pytest.fixture(params=READ if ALL else [list(READ)[SEED % 2]])
def same_calls(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every commit makes the same calls, however busy the machine is."""
    monkeypatch.setattr("hms_iceberg.transaction.retry.VERIFIED_SECONDS", READ[request.param])


def sample(count: int, every: int) -> list[int]:
    """Numbers of the cells to try."""
    return list(range(count)) if ALL else list(range(SEED % every, count, every))


class Cells:
    """The cells of one test: each is tried, whatever happened in those before."""

    def __init__(self) -> None:
        self.count = 0
        self._failures: list[str] = []

    @contextmanager
    def cell(self, name: str) -> Iterator[None]:
        """One of them."""
        self.count += 1
        try:
            yield
        except Exception as error:
            logger.exception("%s", name)
            self._failures.append(f"{name}: {type(error).__name__}: {error}")

    def check(self, record_property: Callable[[str, object], None]) -> None:
        """Raises AssertionError where one failed."""
        record_property("cells", self.count)
        assert not self._failures, "\n".join(self._failures)


def fresh(namespace: str) -> str:
    return f"{namespace}.t{uuid.uuid4().hex[:10]}"


def check_after(operation: Operation, catalog: Catalog, name: str, reported: str, is_settled: bool = True) -> bool:
    """What must be true after every fault, with a catalog that nobody harms; returns whether the commit was made."""
    made = operation.is_made(catalog, name)
    assert reported == "unknown" or made == (reported == "made"), f"reported as {reported}"
    if (operation.creates or operation.mends) and not made:
        if is_settled:
            operation.make(catalog, name)  # nothing is in the way
        return made
    operation.go_on(catalog, name)
    if is_settled:
        assert operation.is_made(catalog, name) == made, "a late request undid it, or made it again"
    return made


def steps_of(operation: Operation, harmed: Catalog, catalog: Catalog, proxy: ThriftProxy, namespace: str) -> list[str]:
    """The calls of an unharmed run, which does not have to find out what the server supports."""
    find_out_capability(harmed)
    name = fresh(namespace)
    operation.prepare(catalog, name)
    proxy.calls.clear()
    operation.make(harmed, name)
    assert operation.is_made(catalog, name)
    return list(proxy.calls)


# --------------------------------------------------------------------------------------- a network that fails


@pytest.mark.usefixtures("same_calls")
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", OPERATIONS)
def test_a_commit_over_a_network_that_fails_is_reported_truly(
    metastore: EmbeddedMetastore,
    catalog: Catalog,
    namespace: str,
    kind: str,
    mode: str,
    record_property: Record,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    operation = OPERATIONS[kind]
    with (
        ThriftProxy(metastore.port) as proxy,
        load_catalog("harmed", uri=proxy.uri, warehouse=metastore.warehouse, **CLIENT, **MODES[mode]) as harmed,
    ):
        steps = steps_of(operation, harmed, catalog, proxy, namespace)
        cells = [(number, step, fault) for number, step in enumerate(steps) for fault in Fault]
        tried = Cells()
        for number, step, fault in (cells[index] for index in sample(len(cells), 17)):
            with tried.cell(f"{fault.name} of call {number + 1}, {step}"):
                name = fresh(namespace)
                operation.prepare(catalog, name)
                rule = proxy.at(number, fault)
                be_patient(harmed, monkeypatch, IMPATIENT if fault is Fault.NO_ANSWER else 600.0)
                reported = outcome(lambda: operation.make(harmed, name))  # noqa: B023
                proxy.heal()
                assert rule.is_done, "the call was never made"
                check_after(operation, catalog, name, reported)
                if step not in CHANGES:
                    assert reported == "made", "a call that may be repeated, or found again, costs no commit"
                elif fault not in LOST:
                    assert reported == "made", "the row tells that it was made"
    tried.check(record_property)


def be_patient(catalog: Catalog, monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    """Waits so long for answers."""
    monkeypatch.setattr(table_lock, "_ANSWER_SECONDS", seconds)
    pool = catalog.metastore.client.pool  # type: ignore[attr-defined]
    pool.settings = replace(pool.settings, socket_timeout=seconds)


# ------------------------------------------------------------------------------------ a client that fails inside


PLACES = {
    "lock": MODES["lock with comparison"],
    "compare-and-swap": MODES["compare-and-swap"],
    "files": {"type": "hadoop"},
}
INSIDE = [
    (place, kind)
    for place in PLACES
    for kind in (*OPERATIONS, *OTHERS)
    if place != "files" or kind in OPERATIONS  # tables in folders know neither views nor rows to be repaired
]


class Inside:
    """A catalog whose calls of the storage and the metastore fail where they are told to, and one that nobody harms."""

    def __init__(self, place: str, metastore: EmbeddedMetastore, folder: Path) -> None:
        where = {"uri": metastore.uri, "warehouse": metastore.warehouse, **CLIENT}
        more = {"warehouse": str(folder)} if place == "files" else where
        self.steps = Steps()
        self.harmed = load_catalog("harmed", **{**more, **PLACES[place]})
        self.catalog = load_catalog("checking", **{**more, **PLACES[place]})

    def __enter__(self) -> Inside:
        self._watched = ExitStack()
        self._watched.enter_context(self.steps.of(self.harmed.storage, *STORAGE))
        if isinstance(self.harmed.metastore, HiveMetastore):
            self._watched.enter_context(self.steps.of(self.harmed.metastore.client, *CALLS))
            find_out_capability(self.harmed)
        return self

    def __exit__(self, *error: object) -> None:
        self._watched.close()
        self.harmed.close()
        self.catalog.close()

    def cells(self, operation: Operation, name: str) -> list[tuple[int, str, bool]]:
        """Every step of an unharmed run, with every kind of failure, before it and after it."""
        operation.prepare(self.catalog, name)
        self.steps.fail(None)
        operation.make(self.harmed, name)
        assert operation.is_made(self.catalog, name)
        count = len(self.steps.done)
        return [(number, kind, after) for number in range(count) for kind in KINDS for after in (False, True)]

    def reported(self, operation: Operation, name: str) -> str:
        """How the operation is reported, whatever it raises."""
        try:
            operation.make(self.harmed, name)
        except (CommitStateUnknownError, KeyboardInterrupt):
            return "unknown"
        except Exception as error:
            logger.info("failed: %r", error)
            # A repair that is made notes in its journal that it is.
            return "unknown" if operation.mends else "failed"
        finally:
            self.steps.fail(None)
        return "made"

    def files(self, operation: Operation, name: str) -> set[str]:
        """All files of the table."""
        return {str(path) for path in operation.folder(self.catalog, name).rglob("*") if path.is_file()}


@pytest.fixture
def inside(
    metastore: EmbeddedMetastore,
    new_folder: Callable[[str], Path],
    namespace: str,
    request: pytest.FixtureRequest,
) -> Iterator[Inside]:
    with Inside(request.param, metastore, new_folder("inside")) as inside:
        if request.param == "files":
            inside.catalog.create_namespace(namespace)
        yield inside


def read_by_pyiceberg(catalog: Catalog, name: str) -> list[int]:
    """The ids of a table that PyIceberg finds by its newest metadata file."""
    from pyiceberg.table import StaticTable

    location = catalog.load_table(name).metadata_location
    return sorted(StaticTable.from_metadata(location, pyiceberg_files(location)).scan().to_arrow()["id"].to_pylist())


@pytest.mark.usefixtures("same_calls")
@pytest.mark.parametrize(("inside", "kind"), INSIDE, indirect=["inside"])
def test_a_commit_that_fails_inside_is_reported_truly_and_a_certain_failure_leaves_no_file(
    inside: Inside, namespace: str, kind: str, record_property: Record
) -> None:
    operation, tried = {**OPERATIONS, **OTHERS}[kind], Cells()
    cells = inside.cells(operation, fresh(namespace))
    for number, error, after in (cells[index] for index in sample(len(cells), 61)):
        name = fresh(namespace)
        operation.prepare(inside.catalog, name)
        before = inside.files(operation, name)
        inside.steps.fail(number, KINDS[error], after)
        reported = inside.reported(operation, name)
        with tried.cell(f"{error} {'after' if after else 'before'} step {number}"):
            if reported == "failed" and kind not in ("repair", "undo a repair"):  # which leave their journal
                assert inside.files(operation, name) == before
            made = check_after(operation, inside.catalog, name, reported)
            if made and "view" not in kind:
                assert read_by_pyiceberg(inside.catalog, name) == sorted({*operation.rows, 2})
    tried.check(record_property)


@pytest.mark.usefixtures("same_calls")
@pytest.mark.parametrize(("inside", "kind"), INSIDE, indirect=["inside"])
def test_a_commit_that_was_made_and_told_as_a_conflict_keeps_its_files_whatever_happens_then(
    inside: Inside, namespace: str, kind: str, record_property: Record, monkeypatch: pytest.MonkeyPatch
) -> None:
    operation, tried = {**OPERATIONS, **OTHERS}[kind], Cells()

    def lie(number: int, error: str, after: bool) -> None:
        """The next swap is made and told as lost; then the step of this number fails."""
        for lease in (HiveLease, FileSystemLease):
            monkeypatch.setattr(lease, "swap", swap_and_lie(lease.swap, number, error, after))

    def swap_and_lie(swap: Callable[..., object], number: int, error: str, after: bool) -> Callable[..., object]:
        def lying(lease: object, *versions: object) -> object:
            monkeypatch.setattr(type(lease), "swap", swap)
            swap(lease, *versions)
            inside.steps.fail(number, KINDS[error], after)
            raise CommitFailedError("Another commit was first.")

        return lying

    cells = [(number, error, after) for number in range(20) for error in KINDS for after in (False, True)]
    for number, error, after in (cells[index] for index in sample(len(cells), 43)):
        name = fresh(namespace)
        operation.prepare(inside.catalog, name)
        lie(number, error, after)
        reported = inside.reported(operation, name)
        with tried.cell(f"{error} {'after' if after else 'before'} step {number} after the lie"):
            assert reported == "made" or error == "Ctrl-C" or operation.mends
            assert check_after(operation, inside.catalog, name, reported)
            if "view" not in kind:
                assert read_by_pyiceberg(inside.catalog, name) == sorted({*operation.rows, 2})
    tried.check(record_property)


# ------------------------------------------------------------------------------------------- a killed client


@pytest.fixture(scope="module")
def victims() -> Iterator[Victims]:
    with Victims() as victims:
        yield victims


@pytest.mark.parametrize("mode", SIMPLE_MODES)
@pytest.mark.parametrize("kind", OPERATIONS)
def test_a_commit_whose_client_is_killed_harms_nobody(
    metastore: EmbeddedMetastore,
    catalog: Catalog,
    namespace: str,
    victims: Victims,
    kind: str,
    mode: str,
    record_property: Record,
) -> None:
    operation = OPERATIONS[kind]
    properties = {"warehouse": str(metastore.warehouse), **CLIENT, **MODES[mode]}
    tried, died = Cells(), None
    for point in sample(60, 17):
        name = fresh(namespace)
        operation.prepare(catalog, name)
        died = victims.run(metastore.uri, properties, kind, name, point)
        with tried.cell(f"killed at point {point}, {died or 'the end'}"):
            how, _, what = (died or "answered create_table").partition(" ")
            sure = how != "sent" or what not in CHANGES
            made = check_after(operation, catalog, name, "unknown", sure)
            if what in CHANGES and sure:
                assert made == (how == "answered")
        if died is None:
            break
    tried.check(record_property)
    assert died is None, "there are more points than were tried"


# ---------------------------------------------------------------------------------------- a killed metastore


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedMetastore]:
    """A metastore of these tests' own, as they kill it."""
    folder = tmp_path_factory.mktemp("metastore")
    with EmbeddedMetastore(folder, lock_expiry_seconds=4, start_timeout=300) as server:
        yield server


def start(server: EmbeddedMetastore) -> None:
    """Starts it; a machine that is busy may need a second try."""
    try:
        server.start()
    except MetastoreUnavailableError:
        server.start()


@pytest.mark.parametrize(
    ("kind", "mode"),
    [
        (kind, mode)
        for number, kind in enumerate(OPERATIONS)
        for mode in (SIMPLE_MODES if ALL else [SIMPLE_MODES[(SEED + number) % 2]])
        if ALL or (SEED + number) % 4 < 2
    ],
)
@pytest.mark.usefixtures("same_calls")
def test_a_commit_whose_metastore_is_killed_is_reported_truly_and_the_next_one_is_made(
    server: EmbeddedMetastore, kind: str, mode: str, record_property: Record
) -> None:
    """Before it has done a step, and after; by default a cell for some operations, as a new start takes seconds."""
    operation = OPERATIONS[kind]
    more = {"hive.metastore.connect.retries": "2", "hive.metastore.client.connect.retry.delay": "50ms"}
    namespace = f"killed_{uuid.uuid4().hex[:8]}"
    start(server)
    with (
        ThriftProxy(server.port) as proxy,
        load_catalog(
            "harmed", uri=proxy.uri, warehouse=server.warehouse, **{**CLIENT, **more}, **MODES[mode]
        ) as harmed,
        load_catalog("x", uri=server.uri, warehouse=server.warehouse) as catalog,
    ):
        catalog.create_namespace(namespace)
        steps = steps_of(operation, harmed, catalog, proxy, namespace)
        cells = [
            (number, step, fault)
            for number, step in enumerate(steps)
            for fault in (Fault.DROP_REQUEST, Fault.DROP_ANSWER)
        ]
        tried = Cells()
        for number, step, fault in cells if ALL else [cells[(SEED * 5 + len(kind)) % len(cells)]]:
            with tried.cell(f"call {number + 1}, {step}, {fault.name}"):
                name = fresh(namespace)
                start(server)  # where the cell before broke off
                operation.prepare(catalog, name)
                done = fault is Fault.DROP_ANSWER
                rule = proxy.at(
                    number, fault, before=None if done else server.kill, after=server.kill if done else None
                )
                reported = outcome(lambda: operation.make(harmed, name))  # noqa: B023
                proxy.heal()
                assert rule.is_done, "the call was never made"
                start(server)
                made = check_after(operation, catalog, name, reported)
                assert made == (step == "unlock" or (step in CHANGES and done))
    tried.check(record_property)
