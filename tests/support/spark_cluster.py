"""Spark's own kind of cluster: a master and workers, each a process, on one machine."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from tests.support.ports import free_port


class StandaloneCluster:
    """A cluster with a worker of one core for each host, as a context manager. Hosts are addresses like 127.0.0.2."""

    def __init__(self, folder: Path, hosts: Sequence[str]) -> None:
        import pyspark

        self._home = Path(pyspark.__file__).parent
        self._folder = folder
        self._hosts = hosts
        self._port = free_port()
        self.address = f"spark://127.0.0.1:{self._port}"
        self._processes: list[subprocess.Popen[bytes]] = []

    def _start(self, host: str, log: Path, *words: str) -> None:
        own = {"SPARK_HOME": str(self._home), "SPARK_WORKER_DIR": str(self._folder), "SPARK_DAEMON_MEMORY": "256m"}
        own |= {"SPARK_NO_DAEMONIZE": "1", "SPARK_LOCAL_IP": host}
        command = [str(self._home / "bin" / "spark-class"), *words, "--webui-port", "0"]
        with open(log, "ab") as told:
            self._processes.append(subprocess.Popen(command, env=os.environ | own, stdout=told, stderr=told))

    def __enter__(self) -> StandaloneCluster:
        log = self._folder / "master.log"
        master = ("org.apache.spark.deploy.master.Master", "--host", "127.0.0.1", "--port", str(self._port))
        self._start("127.0.0.1", log, *master)
        for host in self._hosts:
            worker = ("org.apache.spark.deploy.worker.Worker", "--host", host, "-c", "1", "-m", "700m", self.address)
            self._start(host, Path(os.devnull), *worker)
        deadline = time.monotonic() + 120
        while log.read_text(errors="replace").count("Registering worker") < len(self._hosts):
            if time.monotonic() > deadline:
                self.__exit__()
                raise AssertionError(log.read_text()[-2000:])
            time.sleep(0.2)
        return self

    def __exit__(self, *failure: object) -> None:
        for process in self._processes:
            process.terminate()
            process.wait()

    def executor(self, host: str) -> int:
        """The id of the process of the executor on a host."""
        worker = self._processes[1 + self._hosts.index(host)].pid
        told = subprocess.run(["ps", "-o", "pid=", "--ppid", str(worker)], capture_output=True, text=True, check=True)
        (pid,) = told.stdout.split()
        return int(pid)
