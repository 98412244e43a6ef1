"""A REST server that dies after so many calls of a commit to several tables: `python -m … URI PORT CALLS`.

The calls are those to the metastore and those that make or delete a file, from the request of the commit on.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any

import uvicorn

from hms_iceberg.catalog import load_catalog
from hms_iceberg.hms.hive_metastore import hive_client
from hms_iceberg.rest import application
from tests.support.commit_operations import find_out_capability

DEAD = 9


def main() -> None:
    uri, port, calls = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    left = [calls]
    is_begun = [False]

    def counting(call: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*arguments: Any, **more: Any) -> Any:
            answer = call(*arguments, **more)
            left[0] -= is_begun[0]
            if left[0] < 0:
                os._exit(DEAD)
            return answer

        return counted

    with load_catalog("doomed", uri=uri) as catalog:
        find_out_capability(catalog)
        pool, storage = hive_client(catalog.metastore).pool, catalog.storage
        pool.call = counting(pool.call)  # type: ignore[method-assign]
        for name in ("create", "delete"):
            setattr(storage, name, counting(getattr(storage, name)))
        served = application(catalog)

        async def beginning(scope: Any, receive: Any, send: Any) -> None:
            is_begun[0] |= scope["type"] == "http" and scope["path"].endswith("/transactions/commit")
            await served(scope, receive, send)

        uvicorn.run(beginning, port=port, log_level="error")


if __name__ == "__main__":
    main()
