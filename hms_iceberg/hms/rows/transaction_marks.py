"""The mark of a transaction on several tables, in the parameters of each row that has moved."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass

from hms_iceberg.errors import MetastoreError
from hms_iceberg.metastore import Identifier
from hms_iceberg.processes import Process
from hms_iceberg.transaction.intents import IntendedTable, Intent

MARK = "hms_iceberg.transaction"
"""The parameter that holds it."""


@dataclass(frozen=True)
class Mark:
    """A row's mark of the transaction that moved it; a reader needs no more than this and the row that decides."""

    transaction: str
    record: str  # where its intent is
    owner: str  # host and process of whoever made it
    base: str  # the table's metadata file before, `new` after
    new: str
    base_hash: str  # what the row said of the base of an encrypted table
    decides: Identifier  # the names of the table whose row decides
    decides_base: str  # that table's metadata file before, `decides_new` after
    decides_new: str
    uuid: str  # of the table; `decides_uuid` of the table whose row decides
    decides_uuid: str

    @classmethod
    def made(cls, intent: Intent, number: int, owner: str, base_hash: str) -> Mark:
        """The mark of the row that moves as number `number`, from 0."""
        table, last = intent.tables[number], intent.tables[-1]
        return cls(
            transaction=intent.transaction_id,
            record=intent.record,
            owner=owner,
            base=table.base,
            new=table.new,
            base_hash=base_hash,
            decides=last.identifier,
            decides_base=last.base,
            decides_new=last.new,
            uuid=table.uuid,
            decides_uuid=last.uuid,
        )

    @classmethod
    def of(cls, parameters: Mapping[str, str] | None) -> Mark | None:
        """The mark in the parameters of a row; None if there is none."""
        text = (parameters or {}).get(MARK)
        if not text:
            return None
        try:
            told = json.loads(text)
            return cls(**{**told, "decides": tuple(told["decides"])})
        except (ValueError, TypeError, KeyError) as error:
            raise MetastoreError(
                f"The parameter {MARK} of a table's row does not tell of a transaction on several tables: "
                f"{text[:200]!r}. It was written by a newer version of hms_iceberg, or by hand: use that version, or "
                "remove it."
            ) from error

    @property
    def decides_itself(self) -> bool:
        """Whether the row that has this mark is the one that decides."""
        return self.new == self.decides_new

    @property
    def owner_process(self) -> Process | None:
        """The owner, if it was a process of this machine."""
        host, _, process = self.owner.partition(" ")
        return Process.find(host, process)

    @property
    def unfinished(self) -> str | None:
        """The state of a transaction that has not removed this mark, in words; None of the last mark, which stays."""
        if self.decides_itself:
            return None
        return (
            f"transaction {self.transaction} of {self.owner}, which {'.'.join(self.decides)} decides, is not finished"
        )

    @property
    def text(self) -> str:
        """The value of the parameter."""
        return json.dumps(asdict(self), separators=(",", ":"))

    def intent_for(self, identifier: Identifier) -> Intent:
        """The part of the intent that the mark tells of, in the row of a table."""
        own = IntendedTable(identifier, self.uuid, self.base, self.new)
        last = IntendedTable(self.decides, self.decides_uuid, self.decides_base, self.decides_new)
        return Intent(self.transaction, (own, last))


FINISHED_BY = "If its owner is dead, the next commit to the table finishes it; until then nothing of it is seen."
"""What becomes of an unfinished transaction."""


def owner_mark() -> str:
    """Host and process, as marks name the owner of a transaction."""
    process = Process.this()
    return f"{process.host} {process.mark}"
