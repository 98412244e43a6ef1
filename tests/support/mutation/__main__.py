"""Changes modules in small ways, one at a time, and tells which changes no test notices.

    python -m tests.support.mutation hms_iceberg/transaction tests/unit/transaction tests/unit/updates

Tests are collected once and run once to learn which of them reach which line. Then each change is made in a fork, which
runs the tests that reach it, the quickest first, up to the first that fails. `coverage` has to be installed.
"""

from __future__ import annotations

import argparse
import gc
import json
import linecache
import os
import resource
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import coverage
import pytest
from click import echo

from tests.support.mutation.mutants import Mutant, functions, mutants

KILLED, TIMEOUT, SURVIVED, UNREACHED = "killed", "timeout", "survived", "unreached"


@dataclass(frozen=True)
class Result:
    """What became of a mutant; `tests` ran, or would have."""

    module: str
    line: int
    source: str
    change: str
    outcome: str
    tests: int


class Tester:
    """A plugin of pytest that runs the collected tests for each mutant.

    Args:
        modules: the files that are changed.
        seconds: of processor that the tests of one mutant may take, as measured without it.
        strings: whether words are changed as well.
        only: of lines: module and text; None takes all.
        results: a JSON file of the results, written after each module.
        learned: a folder that keeps what the tests reach, for the next run on the same code.
    """

    def __init__(
        self,
        modules: Sequence[Path],
        seconds: float,
        strings: bool,
        only: set[tuple[str, str]] | None,
        learned: Path | None,
        results: Path | None,
    ) -> None:
        self._results = results
        self._learned = learned
        self._strings = strings
        self._modules = modules
        self._seconds = seconds
        self._only = only
        self._folder = Path(tempfile.mkdtemp(prefix="mutants-"))
        self._took: dict[str, float] = {}
        self._kills: Counter[str] = Counter()
        self._reached: dict[tuple[str, int], list[str]] = {}
        self.results: list[Result] = []

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection(self) -> None:
        """The same examples for every mutant."""
        from hypothesis import settings  # pytest warns if it finds it imported

        settings.register_profile("mutants", settings.get_profile("patient"), derandomize=True, database=None)
        settings.load_profile("mutants")

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Instead of the tests: the mutants."""
        if session.testsfailed:
            raise session.Interrupted("tests cannot be collected")
        self._items = {item.nodeid: item for item in session.items}
        session.config._tmp_path_factory.getbasetemp()  # type: ignore[attr-defined]
        session.config.pluginmanager.unregister(name="terminalreporter")
        self._learn()
        self._functions = _functions_of(self._modules)
        gc.collect()
        gc.freeze()  # forks then share what they do not change
        for module in self._modules:
            self._try_all(module)
        shutil.rmtree(self._folder)
        return True

    def _learn(self) -> None:
        """Runs all tests in a fork, to learn how long they take and which lines they reach."""
        folder = self._learned or self._folder
        folder.mkdir(exist_ok=True)
        data, told = folder / "coverage", folder / "took.json"
        if not told.exists() and not os.fork():
            measured = coverage.Coverage(str(data), include=[str(each) for each in self._modules], config_file=False)
            measured.start()
            took: dict[str, float] = {}
            for item in self._items.values():
                measured.switch_context(item.nodeid)
                begun = time.process_time()
                if _run([item]) == 1:
                    took[item.nodeid] = time.process_time() - begun
                else:
                    echo(f"fails without a mutant, and is left out: {item.nodeid}", err=True)
            measured.stop()
            measured.save()
            told.write_text(json.dumps(took))
            os._exit(0)
        with suppress(ChildProcessError):
            os.wait()
        self._took = {test: took for test, took in json.loads(told.read_text()).items() if test in self._items}
        lines = coverage.CoverageData(str(data))
        lines.read()
        for module in self._modules:
            for line, names in lines.contexts_by_lineno(str(module)).items():
                self._reached[str(module), line] = sorted(self._took.keys() & set(names), key=self._took.__getitem__)
        echo(f"{len(self._took)} tests, {sum(self._took.values()):.0f} s")

    def _try_all(self, module: Path) -> None:
        originals = functions(compile(module.read_text(), str(module), "exec"))
        name = str(module.relative_to(Path.cwd()))
        of_module: dict[str, None] = {}
        for (path, _), tests in self._reached.items():
            of_module |= dict.fromkeys(tests if path == str(module) else ())
        begun, counts = time.monotonic(), defaultdict(int)
        for number, mutant in enumerate(mutants(module, self._strings)):
            source = linecache.getline(str(module), mutant.line).strip()
            if self._only is not None and (name, source) not in self._only:
                continue
            if mutant.function is None:
                tests = sorted(of_module, key=self._took.__getitem__)
            else:
                last = max((line for *_, line in originals[mutant.function].co_lines() if line), default=mutant.line)
                lines = [mutant.line, *range(mutant.line + 1, last + 1)]
                tests = next((found for each in lines if (found := self._reached.get((str(module), each)))), [])
            tests = self._affordable(sorted(tests, key=self._promise, reverse=True))
            if mutant.function is None:  # to import everything anew takes long enough
                tests = tests[:20]
            outcome = self._try(module, number, mutant, tests) if tests else UNREACHED
            counts[outcome] += 1
            self.results.append(Result(name, mutant.line, source, mutant.change, outcome, len(tests)))
            if outcome in (SURVIVED, UNREACHED):
                echo(f"{name}:{mutant.line} {outcome} ({len(tests)})  {mutant.change}")
        echo(f"== {name}: {dict(counts)}, {time.monotonic() - begun:.0f} s")
        if self._results is not None:
            self._results.write_text(json.dumps([asdict(each) for each in self.results], indent=1))

    def _promise(self, test: str) -> float:
        """How many mutants a test has killed for what it costs."""
        return (self._kills[test] + 0.1) / (self._took[test] + 0.01)

    def _affordable(self, tests: Iterable[str]) -> list[str]:
        chosen, left = [], self._seconds
        for test in tests:
            left -= self._took[test]
            if left < 0 and chosen:
                break
            chosen.append(test)
        return chosen

    def _try(self, module: Path, number: int, mutant: Mutant, tests: list[str]) -> str:
        """Whether the tests notice a mutant."""
        limit = int(10 + 5 * sum(map(self._took.__getitem__, tests)))
        child = os.fork()
        if not child:
            os.setsid()
            signal.alarm(10 * limit)  # where nothing is done any more, on a machine that others use
            resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))
            resource.setrlimit(resource.RLIMIT_DATA, (6 << 30, 6 << 30))
            if mutant.function is None:
                chosen = self._folder / "chosen.json"
                chosen.write_text(json.dumps([str(module), self._strings, number, tests]))
                os.execv(sys.executable, [sys.executable, "-m", "tests.support.mutation", "--one", str(chosen)])
            for each in self._functions[(str(module), *mutant.function)]:
                try:
                    each.__code__ = mutant.of_function()
                except ValueError:  # it has other cells without its `super`
                    os._exit(1)
            passed = _run([self._items[each] for each in tests])
            os._exit(0 if passed == len(tests) else 2 + min(passed, 200))
        _, status = os.waitpid(child, 0)
        with suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)
        for each in self._basetemp().iterdir():
            shutil.rmtree(each, ignore_errors=True)
        if os.WIFSIGNALED(status):
            return TIMEOUT
        code = os.WEXITSTATUS(status)
        if code >= 2 and mutant.function is not None:
            self._kills[tests[code - 2]] += 1
        return KILLED if code else SURVIVED

    def _basetemp(self) -> Path:
        item = next(iter(self._items.values()))
        return Path(item.config._tmp_path_factory.getbasetemp())  # type: ignore[attr-defined]


def _functions_of(modules: Sequence[Path]) -> dict[tuple[str, str, int], list[FunctionType]]:
    """The functions of imported modules, by path, name and first line."""
    paths, found = set(map(str, modules)), defaultdict(list)
    for each in gc.get_objects():
        if isinstance(each, FunctionType) and each.__code__.co_filename in paths:
            found[each.__code__.co_filename, each.__code__.co_name, each.__code__.co_firstlineno].append(each)
    return found


def _run(items: list[Any]) -> int:
    """Runs tests up to the first that fails, and counts those that passed."""
    failed = False

    class Watch:
        @staticmethod
        def pytest_runtest_logreport(report: pytest.TestReport) -> None:
            nonlocal failed
            failed |= report.failed

    passed = 0
    manager = items[0].config.pluginmanager
    manager.register(Watch, "watch")
    for each, following in zip(items, [*items[1:], None], strict=True):
        each.config.hook.pytest_runtest_protocol(item=each, nextitem=following)
        if failed:
            break
        passed += 1
    manager.unregister(name="watch")
    return passed


def _one(chosen: Path) -> int:
    """Runs tests with a mutant of a module's own lines, which are run when it is imported."""
    path, strings, number, tests = json.loads(chosen.read_text())
    code = mutants(Path(path), strings)[number].code
    get_code = SourceFileLoader.get_code

    def changed(self: SourceFileLoader, name: str) -> CodeType | None:
        return code if self.path == path else get_code(self, name)

    SourceFileLoader.get_code = changed  # type: ignore[method-assign]
    sys.stdout = open(os.devnull, "w")  # noqa: SIM115
    return int(pytest.main(["-x", "-q", "-p", "no:cacheprovider", *tests]))


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser("tests.support.mutation", description=__doc__)
    parser.add_argument("paths", nargs="*", help="modules or folders that are changed, and tests or their folders")
    parser.add_argument("--seconds", type=float, default=1.5, help="of processor, for one mutant")
    parser.add_argument("--strings", action="store_true", help="change words as well")
    parser.add_argument("--results", type=Path, help="a JSON file of the results")
    parser.add_argument("--survivors", type=Path, help="try again the lines of survivors in such a file")
    parser.add_argument("--learned", type=Path, help="a folder for what tests reach, read if it is there")
    parser.add_argument("--ignore", action="append", default=[], help="tests that start threads when imported")
    parser.add_argument("--one", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        return _one(options.one)
    changed = [Path(each) for each in options.paths if not each.startswith("tests")]
    modules = [
        module.resolve() for each in changed for module in ([each] if each.is_file() else sorted(each.rglob("*.py")))
    ]
    only = None
    if options.survivors:
        before = json.loads(options.survivors.read_text())
        only = {(each["module"], each["source"]) for each in before if each["outcome"] in (SURVIVED, UNREACHED)}
    tester = Tester(modules, options.seconds, options.strings, only, options.learned, options.results)
    tests = [each for each in options.paths if each.startswith("tests")]
    ignored = [f"--ignore={each}" for each in options.ignore]
    settings_of_pytest = ["-q", "-p", "no:cacheprovider", "--capture=fd", "-o", "tmp_path_retention_policy=none"]
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        pytest.main([*settings_of_pytest, f"--basetemp={folder}/t", *ignored, *tests], plugins=[tester])
    return 0


if __name__ == "__main__":
    sys.exit(main())
