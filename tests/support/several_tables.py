"""Transactions on several tables that are harmed in every way, with commits of others between; what is seen of them."""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from random import Random
from typing import Any

import pyarrow as pa

from hms_iceberg.catalog import Catalog, load_catalog
from hms_iceberg.errors import IcebergError, MetastoreError
from hms_iceberg.hms.embedded import EmbeddedMetastore
from hms_iceberg.hms.hive_metastore import hive_client
from hms_iceberg.hms.locking.lock_admin import list_locks
from hms_iceberg.hms.rows.transaction_marks import Mark
from hms_iceberg.transaction.intents import Intent, open_among
from tests.support.commit_operations import QUICK, find_out_capability, outcome
from tests.support.killed_catalog import Killed, KilledAt
from tests.support.thrift_proxy import Fault, ThriftProxy

logger = logging.getLogger(__name__)

ALTER = "alter_table_with_environment_context"
SCHEMA = pa.schema([pa.field("id", pa.int64()), pa.field("amount", pa.int64())])
_FIRST = 100  # the number of the first transaction; what others write has the id 0
_FAULTS = [Fault.DROP_REQUEST, Fault.DROP_ANSWER, Fault.CUT_ANSWER, Fault.LATE_REQUEST, Fault.DOUBLE_REQUEST]
_IMPATIENT = {"hive.metastore.client.connect.retry.delay": "10ms"}


def rows(*pairs: tuple[int, int]) -> pa.Table:
    """Rows of ids and amounts."""
    return pa.table({"id": [each[0] for each in pairs], "amount": [each[1] for each in pairs]}, SCHEMA)


def give_back_locks(bank: Catalog) -> None:
    """What the metastore does after a while with the locks of the dead."""
    client = hive_client(bank.metastore)
    for lock in list_locks(client):
        client.unlock(lock.lock_id, lock.table or "")


def peer_table(bank: Catalog, name: str) -> Any:
    """PyIceberg's table of a name."""
    from pyiceberg.catalog import load_catalog as load_peer

    return load_peer("peer", type="hive", uri=bank.properties["uri"]).load_table(name)


def open_intents(bank: Catalog, names: Sequence[str]) -> list[Intent]:
    """The intents beside the metadata of tables."""
    found: list[Intent] = []
    for name in names:
        table = bank.load_table(name)
        files = (each.location for each in table.storage.list(f"{table.location()}/metadata"))
        found += open_among(files, table.storage)
    return found


class Storm:
    """Rounds of a transaction that is harmed, a commit of somebody else, and commits of ours; somebody reads all along.

    Every read sees each transaction in all of its tables or in none, and amounts that sum up to nothing; what was seen
    once stays, what was told as made or failed is true, and what others commit is never undone.

    Attributes:
        names: the tables.
        told: how often each kind of harm ended how.
        reads: how many reads there were.
    """

    def __init__(
        self,
        bank: Catalog,
        server: EmbeddedMetastore,
        namespace: str,
        others: Sequence[Callable[[str], object]],
        seed: int,
    ) -> None:
        self._bank, self._server, self._others = bank, server, others
        self._random = Random(seed)
        self.names = [f"{namespace}.t{number}" for number in range(6)]
        self._chosen: dict[int, set[str]] = {}
        self._of_others = Counter[str]()
        self.told = Counter[str]()
        self.reads = 0

    def run(self, rounds: int) -> None:
        """Makes the tables, and does so many rounds."""
        for name in self.names:
            self._bank.create_table(name, SCHEMA, properties=QUICK).append(rows((1, 0)))
        with self._reader() as check_reader:
            for number in range(_FIRST, _FIRST + rounds):
                self._round(number)
                check_reader()

    # ------------------------------------------------------------------------------------------- a round

    def _round(self, number: int) -> None:
        choose = self._random
        chosen = choose.sample(self.names, choose.randint(2, len(self.names)))
        self._chosen[number] = set(chosen)
        before = self._seen(self._bank)
        harm = choose.choice([self._no_harm, self._owner_killed, self._network, self._metastore_killed, self._beside])
        told, is_committed_beside = self._transaction(number, chosen, harm)
        what = f"round {number}: {harm.__name__} ended as {told}"
        logger.info("Now %s", what)
        if not self._server.is_running():
            self._server.start()
        seen = self._seen(self._bank)
        give_back_locks(self._bank)
        # One commit is enough to tear what an owner had begun to take back: see the guide.
        if choose.random() < 0.5 and not is_committed_beside and told != "unknown":
            self._commit_of_others(choose.choice(self.names))
        for name in (*self._moved(), *choose.sample(self.names, 2)):
            self._bank.load_table(name).append(rows((0, 0)))
            self._of_others[name] += 1
        finished = self._seen(self._bank)
        assert before <= seen <= finished <= before | {number}, what
        assert told not in ("made", "failed") or (number in finished) is (told == "made"), what
        is_made = "made" if number in finished else "not made"
        self.told[f"{harm.__name__.strip('_')}: {told}, {is_made}"] += 1

    def _transaction(self, number: int, chosen: Sequence[str], harm: Callable[..., Any]) -> tuple[str, bool]:
        """How a transaction ended as its owner tells, and whether somebody committed beside it."""
        amounts = [self._random.randrange(-50, 50) for _ in chosen[1:]]
        with ExitStack() as stack:
            proxy = stack.enter_context(ThriftProxy(self._server.port, late_seconds=0.3, slow_seconds=0))
            properties = {**self._bank.properties, "uri": proxy.uri, **_IMPATIENT}
            doomed = stack.enter_context(load_catalog("doomed", **properties))
            find_out_capability(doomed)
            others = sum(self._of_others.values())
            harm(proxy, doomed, chosen)

            def change() -> None:
                with doomed.transaction() as transaction:
                    for name, amount in zip(chosen, [*amounts, -sum(amounts)], strict=True):
                        transaction.table(name).append(rows((number, amount)))

            told = "killed"
            with suppress(Killed):
                told = outcome(change)
            if not self._server.is_running():
                self._server.start()
            proxy.heal()
            return told, sum(self._of_others.values()) > others

    def _moved(self) -> list[str]:
        """A table that an open transaction has moved, if any: who commits to another one first does not meet it."""
        for name in self.names:
            mark = Mark.of(self._bank.metastore.load(tuple(name.split("."))).properties)
            if mark is not None and mark.unfinished is not None:
                return [name]
        return []

    def _commit_of_others(self, name: str) -> None:
        self._random.choice(self._others)(name)
        self._of_others[name] += 1

    # ------------------------------------------------------------------------------------------- harms

    def _no_harm(self, proxy: ThriftProxy, doomed: Catalog, chosen: Sequence[str]) -> None:
        pass

    def _owner_killed(self, proxy: ThriftProxy, doomed: Catalog, chosen: Sequence[str]) -> None:
        KilledAt(doomed, self._random.randrange(8 * len(chosen) + 2))

    def _network(self, proxy: ThriftProxy, doomed: Catalog, chosen: Sequence[str]) -> None:
        self._harm_a_call(proxy, chosen, self._random.choice(_FAULTS))

    def _metastore_killed(self, proxy: ThriftProxy, doomed: Catalog, chosen: Sequence[str]) -> None:
        if self._random.random() < 0.5:
            self._harm_a_call(proxy, chosen, Fault.DROP_REQUEST, before=self._server.kill)
        else:
            self._harm_a_call(proxy, chosen, Fault.DROP_ANSWER, after=self._server.kill)

    def _beside(self, proxy: ThriftProxy, doomed: Catalog, chosen: Sequence[str]) -> None:
        """Somebody else commits between two moves; who takes locks is not let in before the end."""
        if self._bank.properties["iceberg.engine.hive.lock-enabled"] == "true":
            return
        name = self._random.choice(chosen)
        skip = self._random.randrange(2 * len(chosen))
        proxy.on(ALTER, Fault.SLOW_ANSWER, skip=skip, before=lambda: self._commit_of_others(name))

    def _harm_a_call(self, proxy: ThriftProxy, chosen: Sequence[str], fault: Fault, **more: Any) -> None:
        if self._random.random() < 0.5:
            proxy.on(ALTER, fault, skip=self._random.randrange(2 * len(chosen)), **more)
        else:
            proxy.at(self._random.randrange(6 * len(chosen)), fault, **more)

    # ------------------------------------------------------------------------------------------- what is seen

    def _seen(self, catalog: Catalog) -> set[int]:
        """The transactions that are seen, each in all of its tables."""
        before = Counter(self._of_others)
        found = [each.scan().to_arrow() for each in catalog.load_tables(self.names)]
        whole = {name: set(table["id"].to_pylist()) for name, table in zip(self.names, found, strict=True)}
        for number in set().union(*whole.values()) - {0, 1}:
            tables = {name for name, ids in whole.items() if number in ids}
            assert tables == self._chosen[number], f"transaction {number} is seen in a part of its tables: {tables}"
        assert sum(sum(table["amount"].to_pylist()) for table in found) == 0
        for name, table in zip(self.names, found, strict=True):
            ids = table["id"].to_pylist()
            assert len(ids) - ids.count(0) == len(set(ids) - {0}), "a row is there twice"
            if catalog is self._bank:
                assert ids.count(0) == before[name], f"a commit to {name} was undone, or made twice"
        return {number for ids in whole.values() for number in ids if number >= _FIRST}

    @contextmanager
    def _reader(self) -> Iterator[Callable[[], None]]:
        """Somebody who reads all the time; what is given raises what it found wrong."""
        stop, wrong = threading.Event(), list[Exception]()

        def read() -> None:
            known: set[int] = set()
            with load_catalog("reader", **{**self._bank.properties, **_IMPATIENT}) as catalog:
                while not stop.is_set():
                    try:
                        now = self._seen(catalog)
                        assert known <= now, f"{known - now} was seen, and is gone"
                        known = now
                        self.reads += 1
                    except MetastoreError:  # it is dead at the moment
                        stop.wait(0.05)
                    except (AssertionError, IcebergError) as error:
                        wrong.append(error)
                        return

        def check() -> None:
            if wrong:
                raise wrong[0]

        thread = threading.Thread(target=read, name="reader")
        thread.start()
        try:
            yield check
        finally:
            stop.set()
            thread.join()
        check()
