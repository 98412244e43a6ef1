"""The maintenance policy of a table: what the service keeps up, and within which limits."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from datetime import timezone, tzinfo
from difflib import get_close_matches
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Literal, get_args
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from hms_iceberg.errors import ConfigurationError

_SERVICE, _KEEPING = "maintenance.", "hms_iceberg."
_KEPT = ("retain", "tags", "branches", "time")
POLICY_FILE = "maintenance-policy"
"""The property of a catalog that names a policy file."""
_DAY_MS = 24 * 60 * 60 * 1000
LEAST_AGE_MS = _DAY_MS
"""Files that were changed later are no orphans, unless nobody writes: a write that goes on may yet commit them."""
_UNITS_MS = {"m": 60 * 1000, "h": 60 * 60 * 1000, "d": _DAY_MS}
_LONGEST_MS = 1000 * 365 * _DAY_MS
EpochUnit = Literal["s", "ms", "us", "ns"]


@dataclass(frozen=True)
class Age:
    """A number of minutes, hours or days, such as `90d`."""

    count: int  # above 0
    unit: str  # m, h or d

    @classmethod
    def parse(cls, text: str) -> Age | None:
        """The age that a text such as 90d, 36h or 30m says; None for any other text, 0 and ages above 1,000 years."""
        found = re.fullmatch(r"([0-9]{1,12})([mhd])", text.strip().lower())
        age = cls(int(found[1]), found[2]) if found else None
        return age if age and 0 < age.milliseconds <= _LONGEST_MS else None

    @property
    def milliseconds(self) -> int:
        """The age in milliseconds."""
        return self.count * _UNITS_MS[self.unit]

    def __str__(self) -> str:
        return f"{self.count}{self.unit}"


@dataclass(frozen=True)
class Policy:
    """The maintenance policy of a table.

    Each attribute may be set in a policy file by its name with dashes, and by a table property, which goes before the
    file: `maintenance.compact-min-files=10`; of what is kept of the table (rows, tags, branches)
    `hms_iceberg.retain.age=90d`. `PROPERTIES` has the names.

    Attributes:
        enabled: whether the service works on the table.
        compact: whether small files become large ones, and deletes are applied if there are many.
        compact_min_files: how many small files of a partition are worth compacting.
        compact_target_bytes: size of a compacted file; 0 takes the table's `write.target-file-size-bytes`.
        convert_equality_deletes: whether equality deletes become position deletes or vectors.
        rewrite_position_deletes: whether position delete files are combined.
        rewrite_manifests: whether many small manifests are combined.
        rewrite_manifests_min_count: how many manifests below a quarter of the target size are too many.
        expire_snapshots: whether snapshots expire that the table's `history.expire.*` does not keep.
        keep_backups: whether files stay that a rollback to the Hive table from before the migration needs.
        remove_orphans: whether files that no metadata refers to are deleted.
        remove_orphans_every_ms: how often orphan files are searched for, which lists the whole table.
        remove_orphans_age_ms: how old an orphan file must be; 24 hours or more unless nobody writes.
        nobody_writes: whether nobody else writes while the service works, so that orphan files may be younger.
        finish_erasures: whether old files of an erasure go when they are due, if nobody waits for its report.
        retain_column: the column that tells the age of rows: a date, a timestamp, or a number since 1970 with a unit.
        retain_age: how old rows of main become before they are deleted, such as `90d`, `36h` or `30m`.
        retain_unit: what numbers in that column count since 1970: `s`, `ms`, `us` or `ns`.
        retain_whole_partitions: whether rows stay until their whole partition is older, so that no file is rewritten.
        tags_daily: how many tags `daily-2026-01-31` are kept, each of the last snapshot of a day that is over.
        tags_monthly: how many tags `monthly-2026-01` are kept, each of the last snapshot of a month that is over.
        branches_unused_age: branches are dropped that the service has seen at the same snapshot for so long.
        branches_wap: whether branches for write-audit-publish are dropped as well.
        time_zone: the time zone that days begin in, and that times without a zone are of.
    """

    enabled: bool = True
    compact: bool = True
    compact_min_files: int = 5
    compact_target_bytes: int = 0
    convert_equality_deletes: bool = True
    rewrite_position_deletes: bool = True
    rewrite_manifests: bool = True
    rewrite_manifests_min_count: int = 100
    expire_snapshots: bool = True
    keep_backups: bool = True
    remove_orphans: bool = True
    remove_orphans_every_ms: int = 7 * _DAY_MS
    remove_orphans_age_ms: int = 3 * _DAY_MS
    nobody_writes: bool = False
    finish_erasures: bool = True
    retain_column: str = ""
    retain_age: Age | None = None
    retain_unit: EpochUnit | None = None
    retain_whole_partitions: bool = True
    tags_daily: int | None = None
    tags_monthly: int | None = None
    branches_unused_age: Age | None = None
    branches_wap: bool = False
    time_zone: tzinfo = timezone.utc

    def compaction_options(self) -> dict[str, int]:
        """The options of `rewrite_data_files` that the policy sets."""
        target = {"target-file-size-bytes": self.compact_target_bytes} if self.compact_target_bytes else {}
        return {"min-input-files": self.compact_min_files} | target

    def with_settings(self, settings: Mapping[str, Any], source: str) -> Policy:
        """Another policy with some settings: names with dashes or underscores, values also as text."""
        known = {field.name.replace("_", "-"): field.name for field in fields(self)}
        return self._changed({name.replace("_", "-"): value for name, value in settings.items()}, known, source)

    def _changed(self, settings: Mapping[str, Any], known: Mapping[str, str], source: str) -> Policy:
        """Another policy; `known` has the attributes by the names that settings have in the source."""
        kinds = {field.name: KINDS[str(field.type)] for field in fields(self)}
        changes: dict[str, Any] = {}
        for name, value in settings.items():
            if name not in known:
                near = get_close_matches(name, known, 1)
                hint = f" Did you mean {near[0]}?" if near else ""
                raise ConfigurationError(
                    f"Cannot use the setting {name!r} of {source}: expected one of {', '.join(known)}.{hint}"
                )
            kind = kinds[known[name]]
            changes[known[name]] = kind.parse(value)
            if changes[known[name]] is None:
                raise ConfigurationError(
                    f"Cannot use the setting {name} of {source}: expected {kind.expected}, got {value!r}."
                )
        made = replace(self, **changes)
        if made.remove_orphans_age_ms < LEAST_AGE_MS and not made.nobody_writes:
            raise ConfigurationError(
                f"Cannot use remove-orphans-age-ms={made.remove_orphans_age_ms} of {source}: files of writes that go "
                f"on would be deleted. Expected 24 hours ({LEAST_AGE_MS}) or more; if nobody writes while the service "
                "works, set nobody-writes to true as well."
            )
        return made

    def of_table(self, properties: Mapping[str, str], table: str) -> Policy:
        """Another policy, as properties of a table change this one; the names of other properties are not looked at,
        unless they come near to one of `PROPERTIES`."""
        made = self._changed(
            {name: value for name, value in properties.items() if _is_meant(name)},
            PROPERTIES,
            f"the properties of table {table}",
        )
        if bool(made.retain_column) != (made.retain_age is not None):
            lacking, given = ("retain_age", "retain_column") if made.retain_column else ("retain_column", "retain_age")
            raise ConfigurationError(
                f"Cannot tell which rows of table {table} are too old: {property_of(given)}={getattr(made, given)} is "
                f"set, and {property_of(lacking)} is not. Set both, by table properties or in the policy file."
            )
        return made


@dataclass(frozen=True)
class Kind:
    """A kind of setting: what is expected, for people, and a parser that returns None for anything else."""

    expected: str
    parse: Callable[[Any], Any]
    shown: str = ""


def _parse_bool(value: Any) -> bool | None:
    return {"true": True, "false": False}.get(str(value).strip().lower())


def _parse_int(value: Any) -> int | None:
    text = str(value).strip()
    return int(text) if not isinstance(value, bool) and re.fullmatch("[0-9]{1,18}", text) else None


_EPOCH_UNITS = get_args(EpochUnit)


def _parse_unit(value: Any) -> str | None:
    text = str(value).strip().lower()
    return text if text in _EPOCH_UNITS else None


def _parse_zone(value: Any) -> tzinfo | None:
    name = str(value).strip()
    try:
        return timezone.utc if name.upper() == "UTC" else ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return None


KINDS: Mapping[str, Kind] = {
    "bool": Kind("true or false", _parse_bool, "true, false"),
    "int": Kind("a whole number", _parse_int, "integer"),
    "int | None": Kind("a whole number", _parse_int, "integer"),
    "Age | None": Kind("an age above 0 such as 90d, 36h or 30m", lambda value: Age.parse(str(value)), "age"),
    "EpochUnit | None": Kind(f"one of {', '.join(_EPOCH_UNITS)}", _parse_unit, ", ".join(_EPOCH_UNITS)),
    "str": Kind("the name of a column", lambda value: str(value).strip() or None, "text"),
    "tzinfo": Kind("the name of a time zone such as Europe/Berlin or UTC", _parse_zone, "time zone"),
}
"""The kinds of settings, by the annotations of the policy's attributes."""


def property_of(attribute: str) -> str:
    """The table property that sets an attribute of the policy."""
    group, _, rest = attribute.partition("_")
    if group not in _KEPT:
        return _SERVICE + attribute.replace("_", "-")
    return _KEEPING + ("time-zone" if group == "time" else f"{group}.{rest.replace('_', '-')}")


PROPERTIES = {property_of(field.name): field.name for field in fields(Policy)}
"""The attributes of the policy, by the table properties that set them."""


def _is_meant(name: str) -> bool:
    """Whether a table property is one of a policy, or meant to be one."""
    if name.startswith(_SERVICE):
        return not name.startswith(f"{_SERVICE}state.")
    is_kept = any(name.startswith(f"{_KEEPING}{each}") for each in _KEPT)
    return is_kept or (name.startswith(_KEEPING) and bool(get_close_matches(name, PROPERTIES, 1, 0.85)))


def check_policy(properties: Mapping[str, str]) -> None:
    """Refuses properties that look like those of a policy, and are wrong; each by itself, since two that belong
    together may be set one after the other."""
    for name, value in properties.items():
        if _is_meant(name):
            Policy(nobody_writes=True)._changed({name: value}, PROPERTIES, "the table's properties")


@dataclass(frozen=True)
class Policies:
    """The policy of every table: the first pattern (such as `web.*`) that its name matches, else the default."""

    default: Policy = Policy()
    patterns: tuple[tuple[str, Policy], ...] = ()

    @classmethod
    def load(cls, path: str | Path) -> Policies:
        """Reads a policy file: YAML with `default` and `tables`, both optional.

        >>> # default: {compact-min-files: 10}
        >>> # tables:
        >>> #   "raw.*": {expire-snapshots: false}
        """
        import yaml

        try:
            content = yaml.safe_load(Path(path).read_text("utf-8")) or {}
        except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
            raise ConfigurationError(f"Cannot read the policy file {path}: {error}") from error
        if not isinstance(content, dict) or content.keys() - {"default", "tables"}:
            raise ConfigurationError(
                f"Cannot use the policy file {path}: expected a mapping of `default` and `tables`."
            )
        default = Policy().with_settings(_mapping(content.get("default"), path), f"default in {path}")
        patterns = tuple(
            (str(pattern), default.with_settings(_mapping(settings, path), f"{pattern} in {path}"))
            for pattern, settings in _mapping(content.get("tables"), path).items()
        )
        return cls(default, patterns)

    @classmethod
    def of_catalog(cls, properties: Mapping[str, str]) -> Policies:
        """The policies of the file that a catalog's property `maintenance-policy` names; the default without one."""
        path = properties.get(POLICY_FILE)
        return cls.load(path) if path else cls()

    def of(self, table: str, properties: Mapping[str, str]) -> Policy:
        """The policy of a table by its name with dots, changed by the table's properties."""
        found = next((policy for pattern, policy in self.patterns if fnmatchcase(table, pattern)), self.default)
        return found.of_table(properties, table)


def _mapping(value: Any, path: str | Path) -> Mapping[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise ConfigurationError(f"Cannot use the policy file {path}: expected a mapping of settings, got {value!r}.")
    return value
