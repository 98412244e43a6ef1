"""Spark reads Iceberg tables, without a JAR.

    spark = hms_iceberg.spark.extend(spark)                                         a session that runs already
    spark = hms_iceberg.spark.configure(SparkSession.builder).getOrCreate()        a new one
    spark.sql("select * from db.iceberg_table t join db.hive_table h using (id)")

How it works, from the outside in:

    session.py    puts the extension into a session
    compiler.py   compiles bridge/*.java with the compiler that Spark ships, and gives the classes to the executors
    bridge/       the JVM side: SessionCatalog makes Iceberg tables of rows with table_type=ICEBERG, PlanScans puts
                  their files into the optimized plan, FileReader reads them on the executors
    bridge_service.py  answers the questions of the JVM: what is this table, which files, what becomes of a write
"""

from __future__ import annotations

from hms_iceberg.spark.session import configure, extend

__all__ = ["configure", "extend"]
