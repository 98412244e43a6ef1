import java.util.*;
import org.apache.hadoop.fs.*;
import org.apache.hadoop.hive.common.type.*;
import org.apache.hadoop.hive.common.type.Date;
import org.apache.hadoop.hive.ql.io.*;
import org.apache.hadoop.hive.ql.io.avro.*;
import org.apache.hadoop.hive.ql.io.orc.*;
import org.apache.hadoop.hive.ql.io.parquet.*;
import org.apache.hadoop.hive.ql.io.parquet.serde.*;
import org.apache.hadoop.hive.serde2.*;
import org.apache.hadoop.hive.serde2.avro.*;
import org.apache.hadoop.hive.serde2.objectinspector.*;
import org.apache.hadoop.hive.serde2.typeinfo.*;
import org.apache.hadoop.io.*;
import org.apache.hadoop.mapred.*;

/** Writes five rows of every type with the writers of Hive 4.1.0, in New York; an argument names the folder. */
public class WriteRows {
  public static void main(String[] a) throws Exception {
    String names = "i8,i16,i32,i64,f32,f64,b,d9,d38,s,bin,day,at,l,m,st";
    String types = "tinyint:smallint:int:bigint:float:double:boolean:decimal(9,2):decimal(38,10):string:binary:date:timestamp:array<bigint>:map<string,int>:struct<inner:int,l:array<struct<x:string>>>";
    String avroTypes = types.replace("tinyint:smallint", "int:int");
    for (String form : new String[] {"orc", "parquet", "avro"}) {
      Properties p = new Properties();
      p.setProperty("columns", names);
      p.setProperty("columns.types", form.equals("avro") ? avroTypes : types);
      p.setProperty("name", "t");
      JobConf conf = new JobConf();
      List<TypeInfo> infos = TypeInfoUtils.getTypeInfosFromTypeString(p.getProperty("columns.types"));
      TypeInfo struct = TypeInfoFactory.getStructTypeInfo(Arrays.asList(names.split(",")), infos);
      ObjectInspector oi = TypeInfoUtils.getStandardJavaObjectInspectorFromTypeInfo(struct);
      Path out = new Path(a[0] + "/" + form);
      AbstractSerDe serde = form.equals("orc") ? new OrcSerde() : form.equals("parquet") ? new ParquetHiveSerDe() : new AvroSerDe();
      serde.initialize(conf, p, null);
      if (form.equals("orc")) {
        RecordWriter w = new OrcOutputFormat().getRecordWriter(out.getFileSystem(conf), conf, out.toString(), Reporter.NULL);
        for (int i = 0; i < 5; i++) w.write(NullWritable.get(), serde.serialize(row(i, form), oi));
        w.close(Reporter.NULL);
      } else {
        HiveOutputFormat f = form.equals("parquet") ? new MapredParquetOutputFormat() : new AvroContainerOutputFormat();
        org.apache.hadoop.hive.ql.exec.FileSinkOperator.RecordWriter w = f.getHiveRecordWriter(conf, out, ArrayWritable.class, false, p, Reporter.NULL);
        for (int i = 0; i < 5; i++) w.write(serde.serialize(row(i, form), oi));
        w.close(false);
      }
    }
  }
  static List<Object> row(int i, String form) {
    List<Object> r = new ArrayList<>();
    if (i == 4) { for (int n = 0; n < 16; n++) r.add(null); return r; }
    if (form.equals("avro")) { r.add(i); r.add(i * 300); } else { r.add((byte) i); r.add((short) (i * 300)); }
    r.add(i * 100000); r.add(i * 10000000000L); r.add(i / 3f); r.add(i == 2 ? Double.NaN : i / 7d); r.add(i % 2 == 0);
    r.add(HiveDecimal.create("" + i + ".25")); r.add(HiveDecimal.create("123456789012345678." + i + "00000001"));
    r.add("s" + i); r.add(("b" + i).getBytes());
    r.add(Date.valueOf(new String[] {"1969-12-31", "1970-01-01", "2024-02-29", "1900-01-01"}[i]));
    r.add(Timestamp.valueOf(new String[] {"1969-12-31 23:59:58.123", "1970-01-01 00:00:00", "2024-07-01 12:00:00.5", "1950-01-01 00:00:00.001"}[i]));
    r.add(Arrays.asList((long) i, null)); r.add(Collections.singletonMap("k" + i, i));
    r.add(Arrays.asList(i, Arrays.asList(Arrays.asList("x" + i))));
    return r;
  }
}
