"""The procedures of `CALL catalog.system.…`, a table of them in `registry.py`.

To add one, write a file that makes a `Procedure` (see `procedure.py`; `erasure.py` is a short example) and put
it into the table. The JVM asks for the table and knows nothing of any of its rows.
"""
