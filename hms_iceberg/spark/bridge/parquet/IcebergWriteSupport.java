package hms_iceberg.bridge.parquet;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import hms_iceberg.bridge.columns.FieldIds;
import hms_iceberg.bridge.output.PlainRow;
import hms_iceberg.bridge.output.StoredColumns;
import hms_iceberg.bridge.output.WriteRules;
import hms_iceberg.bridge.variants.ShreddedType;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.parquet.io.api.RecordConsumer;
import org.apache.parquet.schema.GroupType;
import org.apache.parquet.schema.LogicalTypeAnnotation;
import org.apache.parquet.schema.MessageType;
import org.apache.parquet.schema.PrimitiveType;
import org.apache.parquet.schema.Type;
import org.apache.parquet.schema.Types;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.ProjectingInternalRow;
import org.apache.spark.sql.execution.datasources.parquet.ParquetWriteSupport;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/**
 * Spark's way to write rows into Parquet, with what Iceberg wants of a file: the id of each field at every level, and
 * UUIDs and fixed bytes as such.
 */
public final class IcebergWriteSupport extends ParquetWriteSupport {
  /** What Spark notes of itself, by which readers know the calendar of old days. */
  private static final String SPARK_VERSION = "org.apache.spark.version";
  private static final LogicalTypeAnnotation VARIANT = annotation();

  private final StructType schema;
  private final Map footer;
  /** By the columns of the file, the types of those that are shredded; null if none is. */
  private final ShreddedType[] shredded;
  private PlainRow plain;
  /** The columns that Spark writes beside those of `plain`; null for none. */
  private ProjectingInternalRow others;
  private StructType ofSpark;
  private RecordConsumer consumer;

  IcebergWriteSupport(WriteRules rules, ShreddedType[] shredded) {
    this.schema = rules.fileSchema;
    this.footer = rules.footer;
    this.shredded = shredded;
    this.ofSpark = schema;
  }

  /** Spark reads shredded variants where its Parquet library has a name for them, from 4.1 on. */
  static boolean canShred() {
    return VARIANT != null;
  }

  public org.apache.parquet.hadoop.api.WriteSupport.WriteContext init(Configuration conf) {
    org.apache.parquet.hadoop.api.WriteSupport.WriteContext context = ofIceberg(super.init(conf));
    plain = PlainRow.isPossible() ? PlainRow.of(schema, context.getSchema(), shredded) : null;
    int[] left = plain == null ? new int[0] : plain.others();
    if (left.length > 0) {
      ofSpark = new StructType();
      for (int i = 0; i < left.length; i++) {
        ofSpark = ofSpark.add(schema.fields()[left[i]]);
      }
      others = StoredColumns.of(ofSpark, left);
      Configuration own = new Configuration(conf);
      own.set(ParquetWriteSupport.SPARK_ROW_SCHEMA(), ofSpark.json());
      super.init(own);
    }
    return context;
  }

  public void prepareForWrite(RecordConsumer given) {
    consumer = given;
    if (plain != null && !plain.to(given)) {
      if (shredded != null || others != null) {
        throw new IllegalStateException("This version of Parquet is not supported: " + given.getClass());
      }
      plain = null;
    } else if (others != null) {
      consumer = plain.consumerOfOthers();
    }
    super.prepareForWrite(hasFixed(ofSpark) ? new FixedBytes(consumer, ofSpark) : consumer);
  }

  public void write(InternalRow row) {
    if (plain == null) {
      super.write(row);
      return;
    }
    if (others != null) {
      others.project(row);
      super.write((InternalRow) others);
      consumer.flush(); // of nulls that it keeps back, since it is not told where the row group ends
    }
    plain.write(row);
  }

  /** The places of the leaves of variants of which some value is NaN, as JSON. */
  public String nanLeaves() {
    ArrayNode places = JsonNodeFactory.instance.arrayNode();
    if (plain != null) {
      plain.addNanLeaves(places);
    }
    return places.toString();
  }

  private org.apache.parquet.hadoop.api.WriteSupport.WriteContext ofIceberg(
      org.apache.parquet.hadoop.api.WriteSupport.WriteContext context) {
    Map metadata = new HashMap(footer);
    if (context.getExtraMetaData().containsKey(SPARK_VERSION)) {
      metadata.put(SPARK_VERSION, context.getExtraMetaData().get(SPARK_VERSION));
    }
    GroupType root = context.getSchema();
    List columns = fields(root, schema);
    for (int i = 0; shredded != null && i < shredded.length; i++) {
      if (shredded[i] != null) {
        columns.set(i, shredded((Type) columns.get(i), shredded[i]));
      }
    }
    MessageType message = new MessageType("table", columns);
    return new org.apache.parquet.hadoop.api.WriteSupport.WriteContext(message, metadata);
  }

  private static Type shredded(Type variant, ShreddedType type) {
    List parts = new ArrayList(variant.asGroupType().getFields());
    parts.set(
        variant.asGroupType().getFieldIndex("value"),
        ((Types.PrimitiveBuilder) Types.optional(PrimitiveType.PrimitiveTypeName.BINARY)).named("value"));
    parts.add(type.column());
    return variant.asGroupType().withNewFields(parts);
  }

  private static List fields(GroupType group, StructType struct) {
    List fields = new ArrayList();
    for (int i = 0; i < struct.fields().length; i++) {
      fields.add(field((Type) group.getFields().get(i), struct.fields()[i]));
    }
    return fields;
  }

  private static Type field(Type type, StructField field) {
    return typed(type, field.dataType(), FieldIds.of(field), new FieldIds(field.metadata()), "");
  }

  /** A type with its id, and with those of what is in it; the ids of elements, keys and values are the field's. */
  private static Type typed(Type type, DataType spark, int id, FieldIds nested, String path) {
    if (type.isPrimitive()) {
      return fixed(type.asPrimitiveType(), nested.fixed(path)).withId(id);
    }
    GroupType group = type.asGroupType();
    if (spark instanceof StructType) {
      return group.withNewFields(fields(group, (StructType) spark)).withId(id);
    }
    if (spark instanceof ArrayType) {
      GroupType repeated = ((Type) group.getFields().get(0)).asGroupType();
      Type element = typed(
          (Type) repeated.getFields().get(0), ((ArrayType) spark).elementType(), nested.id(path + "e"), nested, path + "e");
      return only(group, only(repeated, element)).withId(id);
    }
    if (spark instanceof MapType) {
      GroupType repeated = ((Type) group.getFields().get(0)).asGroupType();
      List both = new ArrayList();
      both.add(typed(
          (Type) repeated.getFields().get(0), ((MapType) spark).keyType(), nested.id(path + "k"), nested, path + "k"));
      both.add(typed(
          (Type) repeated.getFields().get(1), ((MapType) spark).valueType(), nested.id(path + "v"), nested, path + "v"));
      return only(group, repeated.withNewFields(both)).withId(id);
    }
    return variant(group).withId(id);
  }

  /** With the name that the specification has for it; Parquet's library of Spark 4.0 does not know it. */
  private static Type variant(GroupType group) {
    if (VARIANT == null || group.getLogicalTypeAnnotation() != null) {
      return group;
    }
    Types.GroupBuilder builder = (Types.GroupBuilder) Types.buildGroup(group.getRepetition()).as(VARIANT);
    for (int i = 0; i < group.getFieldCount(); i++) {
      builder.addField(group.getType(i));
    }
    return (Type) builder.named(group.getName());
  }

  private static LogicalTypeAnnotation annotation() {
    try {
      return (LogicalTypeAnnotation) LogicalTypeAnnotation.class.getMethod("variantType", new Class[] {byte.class})
          .invoke(null, new Object[] {Byte.valueOf((byte) 1)});
    } catch (ReflectiveOperationException e) {
      return null;
    }
  }

  private static GroupType only(GroupType group, Type child) {
    List children = new ArrayList();
    children.add(child);
    return group.withNewFields(children);
  }

  private static Type fixed(PrimitiveType type, int length) {
    if (length == 0) {
      return type;
    }
    boolean uuid = length < 0;
    Types.PrimitiveBuilder builder = (Types.PrimitiveBuilder) Types.primitive(
        PrimitiveType.PrimitiveTypeName.FIXED_LEN_BYTE_ARRAY, type.getRepetition());
    builder = (Types.PrimitiveBuilder) builder.length(uuid ? 16 : length);
    if (uuid) {
      builder = (Types.PrimitiveBuilder) builder.as(LogicalTypeAnnotation.uuidType());
    }
    return (Type) builder.named(type.getName());
  }

  private static boolean hasFixed(StructType struct) {
    for (int i = 0; i < struct.fields().length; i++) {
      StructField field = struct.fields()[i];
      if (new FieldIds(field.metadata()).hasFixed() || hasFixed(field.dataType())) {
        return true;
      }
    }
    return false;
  }

  private static boolean hasFixed(DataType type) {
    if (type instanceof StructType) {
      return hasFixed((StructType) type);
    }
    if (type instanceof ArrayType) {
      return hasFixed(((ArrayType) type).elementType());
    }
    return type instanceof MapType
        && (hasFixed(((MapType) type).keyType()) || hasFixed(((MapType) type).valueType()));
  }
}
