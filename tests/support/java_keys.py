"""A key service on a keystore for Apache Iceberg in Java, which has none."""

from __future__ import annotations

import subprocess
import zipfile
from pathlib import Path


def keys_jar(runtime: Path, folder: Path) -> Path:
    """A jar of the key service that Apache Iceberg lacks."""
    jar, classes = folder / "keys.jar", folder / "keys"
    source = Path(__file__).parents[1] / "interop" / "encryption" / "KeystoreKeys.java"
    compiler = ["javac", "-proc:none", "-cp", str(runtime), "-d", str(classes), str(source)]
    subprocess.run(compiler, check=True, capture_output=True)
    with zipfile.ZipFile(jar, "w") as made:
        for each in classes.rglob("*.class"):
            made.write(each, each.relative_to(classes))
    return jar
