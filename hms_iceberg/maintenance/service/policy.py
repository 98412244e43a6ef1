"""What the service keeps up in a table, and within which limits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from hms_iceberg.errors import ConfigurationError
from hms_iceberg.maintenance.orphan_files import LEAST_AGE_MS

PREFIX = "maintenance."
POLICY_FILE = "maintenance-policy"
"""The property of a catalog that names a policy file."""
_DAY_MS = 24 * 60 * 60 * 1000


@dataclass(frozen=True)
class Policy:
    """The maintenance policy of a table.

    Each attribute may be set in a policy file, and by a table property of its name with dashes after `maintenance.`,
    such as `maintenance.compact-min-files=10`, which goes before the file.

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

    def compaction_options(self) -> dict[str, int]:
        """The options of `rewrite_data_files` that the policy sets."""
        target = {"target-file-size-bytes": self.compact_target_bytes} if self.compact_target_bytes else {}
        return {"min-input-files": self.compact_min_files} | target

    def with_settings(self, settings: Mapping[str, Any], source: str) -> Policy:
        """Another policy with some settings: names with dashes or underscores, values also as text."""
        known = {field.name: field.default for field in fields(self)}
        changes: dict[str, Any] = {}
        for name, value in settings.items():
            key = name.replace("-", "_")
            if key not in known:
                names = ", ".join(each.replace("_", "-") for each in known)
                raise ConfigurationError(f"Cannot use the setting {name!r} of {source}: expected one of {names}.")
            changes[key] = _value(value, type(known[key]), name, source)
        made = replace(self, **changes)
        if made.remove_orphans_age_ms < LEAST_AGE_MS and not made.nobody_writes:
            raise ConfigurationError(
                f"Cannot use remove-orphans-age-ms={made.remove_orphans_age_ms} of {source}: files of writes that go "
                f"on would be deleted. Expected 24 hours ({LEAST_AGE_MS}) or more; if nobody writes while the service "
                "works, set nobody-writes to true as well."
            )
        return made

    def of_table(self, properties: Mapping[str, str], table: str) -> Policy:
        """Another policy, as a table's `maintenance.*` properties change this one."""
        own = {
            name[len(PREFIX) :]: value
            for name, value in properties.items()
            if name.startswith(PREFIX) and not name.startswith(f"{PREFIX}state.")
        }
        return self.with_settings(own, f"the properties of table {table}")


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
        """The policy of a table by its name with dots, changed by the table's `maintenance.*` properties."""
        found = next((policy for pattern, policy in self.patterns if fnmatchcase(table, pattern)), self.default)
        return found.of_table(properties, table)


def _mapping(value: Any, path: str | Path) -> Mapping[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise ConfigurationError(f"Cannot use the policy file {path}: expected a mapping of settings, got {value!r}.")
    return value


def _value(value: Any, kind: type, name: str, source: str) -> Any:
    text = str(value).strip().lower()
    if kind is bool and text in ("true", "false"):
        return text == "true"
    if kind is int and not isinstance(value, bool) and text.isdigit():
        return int(text)
    expected = "true or false" if kind is bool else "a whole number"
    raise ConfigurationError(f"Cannot use the setting {name} of {source}: expected {expected}, got {value!r}.")
