"""Settings of a write: its options, those of its session, and properties of its table, in this order.

Source: Iceberg documentation, "Spark Configuration": write options and SQL properties.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hms_iceberg.errors import ConfigurationError, InvalidInputError
from hms_iceberg.spark.writing.write_questions import option
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.spec.property_kinds import TableProperty
from hms_iceberg.spec.table_properties import WAP_ENABLED
from hms_iceberg.updates.machinery.content import Isolation

_SESSION = "spark.sql.iceberg."
_SNAPSHOT_PROPERTY = "snapshot-property."
_WAP_ID, _WAP_BRANCH = "spark.wap.id", "spark.wap.branch"


@dataclass(frozen=True)
class WriteSettings:
    """Looks a setting up: an option, then the session's, then the table's property."""

    name: str
    options: Mapping[str, str]
    session: Mapping[str, str]
    properties: Mapping[str, str]

    def text(self, name: str, table_property: TableProperty | None = None, of_session: bool = False) -> str | None:
        """The text of a setting: the option, then the session's (only if `of_session`), then the table's; None if
        nobody sets it."""
        found = option(self.options, name)
        if found is None and of_session:
            found = self.session.get(_SESSION + name)
        if found is None and table_property is not None:
            found = self.properties.get(table_property.name)
        return found

    def number(self, name: str, table_property: TableProperty | None = None, of_session: bool = False) -> int | None:
        """A setting as a number; None if nobody sets it."""
        text = self.text(name, table_property, of_session)
        try:
            return None if text is None else int(text)
        except ValueError:
            raise self._wrong(name, text, "a number") from None

    def switch(
        self, name: str, default: bool, table_property: TableProperty | None = None, of_session: bool = False
    ) -> bool:
        """A setting as a boolean; what is not `true` is false."""
        text = self.text(name, table_property, of_session)
        return default if text is None else text.strip().lower() == "true"

    def choice(self, name: str, choices: tuple[str, ...], table_property: TableProperty | None = None) -> str | None:
        """A setting that is one of some words, in lower case; None if nobody sets it."""
        text = self.text(name, table_property, of_session=True)
        if text is None:
            return None
        if text.strip().lower() not in choices:
            raise self._wrong(name, text, " or ".join(choices))
        return text.strip().lower()

    def _wrong(self, name: str, text: object, expected: str) -> ConfigurationError:
        return ConfigurationError(
            f"Cannot write to the table {self.name}: {name} is {text!r}, expected {expected}. Nothing was written."
        )

    @property
    def isolation(self) -> Isolation:
        """The isolation level against concurrent commits; none unless the option sets one."""
        text = option(self.options, "isolation-level")
        if text is None:
            return Isolation.NONE
        try:
            return Isolation(text.strip().lower())
        except ValueError:
            raise self._wrong("isolation-level", text, "serializable or snapshot") from None

    def snapshot_properties(self) -> dict[str, str]:
        """The writer's own keys for the snapshot's summary."""
        of_session = _SESSION + _SNAPSHOT_PROPERTY
        found = {key[len(of_session) :]: value for key, value in self.session.items() if key.startswith(of_session)}
        for key, value in self.options.items():
            if key.lower().startswith(_SNAPSHOT_PROPERTY):
                found[key[len(_SNAPSHOT_PROPERTY) :]] = value
        return found

    def wap_id(self) -> str | None:
        """The id under which a write is staged, if the table allows that."""
        return self.session.get(_WAP_ID) if WAP_ENABLED.of(self.properties) else None

    def target_branch(self, named: str | None) -> str | None:
        """The branch to write to: the option's, the name's, or in a table of write.wap.enabled the session's."""
        given = option(self.options, "branch")
        if given is not None:
            if named not in (None, given):
                raise InvalidInputError(
                    f"Cannot write to the table {self.name}: its name says the branch {named!r}, the option branch "
                    f"{given!r}. Give one of them."
                )
            return given
        if named is not None or not WAP_ENABLED.of(self.properties):
            return named
        branch = self.session.get(_WAP_BRANCH)
        if branch is not None and _WAP_ID in self.session:
            raise InvalidInputError(
                f"Cannot write to the table {self.name}: cannot set both WAP ID and branch, but {_WAP_ID} is "
                f"{self.session[_WAP_ID]!r} and {_WAP_BRANCH} is {branch!r}. Unset one of them."
            )
        return branch


def output_spec_id(settings: WriteSettings, metadata: TableMetadata) -> int:
    """The id of the partition spec of new files: the table's default one unless the write says another."""
    wanted = settings.number("output-spec-id")
    if wanted is None:
        return metadata.default_spec_id
    if wanted not in metadata.specs_by_id:
        raise InvalidInputError(
            f"Cannot write to the table {settings.name}: output-spec-id {wanted} is not a valid spec id; it has "
            f"{', '.join(map(str, sorted(metadata.specs_by_id)))}."
        )
    return wanted
