"""Apache Iceberg's Java API as a process that makes tables of very many data files, which are not there.

Runs in a PySpark of the version that the runtime was built for, so it imports nothing of this project; no Spark session
is started, only its JVM, in which Janino compiles the loop over the files. Prints the location of each metadata file.
"""

from __future__ import annotations

import argparse
import os

# Like the files of a real table, each differs from the others in its counts, sizes and lengths of texts; some columns
# have no metrics in some files. `c1` and `part` go up with the number of the file, as `planning.py` filters by them.
SOURCE = """
import java.nio.ByteBuffer;
import java.util.*;
import org.apache.iceberg.*;
import org.apache.iceberg.types.*;

public class ManyFiles implements java.util.function.Function {
    static final int COLUMNS = 20;

    static Schema schema() {
        List fields = new ArrayList();
        for (int n = 1; n <= COLUMNS; n++) {
            Type type = n <= 8 ? (Type) Types.LongType.get() : n <= 14 ? (Type) Types.DoubleType.get()
                : n <= 17 ? (Type) Types.StringType.get() : (Type) Types.DateType.get();
            fields.add(Types.NestedField.optional(n, "c" + n, type));
        }
        fields.add(Types.NestedField.optional(COLUMNS + 1, "part", Types.IntegerType.get()));
        return new Schema(fields);
    }

    static String word(Random random) {
        char[] letters = new char[1 + random.nextInt(16)];
        for (int n = 0; n < letters.length; n++) {
            letters[n] = (char) ('a' + random.nextInt(26));
        }
        return new String(letters);
    }

    static void bound(Map bounds, Type type, int column, Object value) {
        bounds.put(Integer.valueOf(column), Conversions.toByteBuffer(type, value));
    }

    static DataFile file(Schema schema, PartitionSpec spec, String location, int number, int inPartition,
            int step) {
        Random random = new Random(number);
        long rows = 50000 + random.nextInt(100000);
        Map sizes = new HashMap(), values = new HashMap(), nulls = new HashMap(), nans = new HashMap();
        Map lower = new HashMap(), upper = new HashMap();
        for (int column = 1; column <= COLUMNS; column++) {
            if (column > 1 && (random.nextInt(50) == 0 || (column - 1) % step != 0)) {
                continue;
            }
            Integer key = Integer.valueOf(column);
            Type type = schema.findType(column);
            sizes.put(key, Long.valueOf(1L << (6 + random.nextInt(16)) | random.nextInt(64)));
            values.put(key, Long.valueOf(rows));
            boolean allNull = column > 1 && random.nextInt(100) == 0;
            nulls.put(key, Long.valueOf(allNull ? rows : column % 3 == 0 ? random.nextInt(300) : 0));
            if (type.typeId() == Type.TypeID.DOUBLE) {
                nans.put(key, Long.valueOf(0));
            }
            if (allNull) {
                continue;
            }
            if (type.typeId() == Type.TypeID.LONG) {
                bound(lower, type, column, Long.valueOf(number * 1000L));
                bound(upper, type, column, Long.valueOf(number * 1000L + 999));
            } else if (type.typeId() == Type.TypeID.DOUBLE) {
                bound(lower, type, column, Double.valueOf(number * 1.5));
                bound(upper, type, column, Double.valueOf(number * 1.5 + 10));
            } else if (type.typeId() == Type.TypeID.STRING) {
                String one = word(random), other = word(random);
                bound(lower, type, column, one.compareTo(other) < 0 ? one : other);
                bound(upper, type, column, one.compareTo(other) < 0 ? other : one);
            } else {
                bound(lower, type, column, Integer.valueOf(number % 3650));
                bound(upper, type, column, Integer.valueOf(number % 3650 + 2));
            }
        }
        int part = number / inPartition;
        Metrics metrics = new Metrics(Long.valueOf(rows), sizes, values, nulls, nans, lower, upper);
        String name = "00000-" + number + "-" + new UUID(number, 7L) + "-00001.parquet";
        return DataFiles.builder(spec)
            .withPath(location + "/data/part=" + part + "/" + name)
            .withFormat(FileFormat.PARQUET)
            .withFileSizeInBytes(1000000L + random.nextInt(500000000))
            .withPartitionPath("part=" + part + (spec.fields().size() > 1 ? "/c1_bucket_4=" + number % 4 : ""))
            .withMetrics(metrics)
            .withSplitOffsets(Collections.singletonList(Long.valueOf(4)))
            .build();
    }

    public Object apply(Object given) {
        String[] options = ((String) given).split(";");
        String location = options[0];
        int files = Integer.parseInt(options[1]);
        int commits = Integer.parseInt(options[2]);
        int inPartition = Integer.parseInt(options[3]);
        int step = COLUMNS / Integer.parseInt(options[6]);
        Schema schema = schema();
        PartitionSpec spec = PartitionSpec.builderFor(schema).identity("part").build();
        Map properties = new HashMap();
        properties.put("format-version", options[4]);
        org.apache.iceberg.hadoop.HadoopTables tables =
            new org.apache.iceberg.hadoop.HadoopTables(new org.apache.hadoop.conf.Configuration());
        Table table = tables.create(schema, spec, properties, location);
        for (int commit = 0; commit < commits; commit++) {
            if (commit > 0 && commit == commits / 2 && options[5].equals("True")) {
                table.updateSpec().addField(org.apache.iceberg.expressions.Expressions.bucket("c1", 4)).commit();
            }
            AppendFiles append = table.newFastAppend();
            int from = (int) ((long) files * commit / commits), to = (int) ((long) files * (commit + 1) / commits);
            for (int number = from; number < to; number++) {
                append.appendFile(file(table.schema(), table.spec(), location, number, inPartition, step));
            }
            append.commit();
        }
        return ((HasTableOperations) table).operations().current().metadataFileLocation();
    }
}
"""


def main() -> None:
    """Makes the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("jar")
    parser.add_argument("location", help="a folder")
    parser.add_argument("--files", type=int, default=100_000)
    parser.add_argument("--commits", type=int, default=10)
    parser.add_argument("--in-partition", type=int, default=80, help="files of each partition")
    parser.add_argument("--format-versions", nargs="+", default=["2"], help="a table of each, in a folder of its name")
    parser.add_argument("--columns", type=int, default=20, help="how many have metrics")
    parser.add_argument("--evolve", action="store_true", help="half of the commits have another partition spec")
    given = parser.parse_args()
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    from pyspark import SparkConf
    from pyspark.java_gateway import launch_gateway

    conf = SparkConf(loadDefaults=False)
    conf.set("spark.driver.extraClassPath", given.jar).set("spark.driver.memory", "3g")
    jvm = launch_gateway(conf).jvm
    compiler = jvm.org.codehaus.janino.SimpleCompiler()
    compiler.setParentClassLoader(jvm.java.lang.Thread.currentThread().getContextClassLoader())
    compiler.cook(SOURCE)
    maker = compiler.getClassLoader().loadClass("ManyFiles").newInstance()
    for version in given.format_versions:
        location = f"{given.location}/v{version}"
        options = (location, given.files, given.commits, given.in_partition, version, given.evolve, given.columns)
        print(maker.apply(";".join(map(str, options))), file=answers, flush=True)


if __name__ == "__main__":
    main()
