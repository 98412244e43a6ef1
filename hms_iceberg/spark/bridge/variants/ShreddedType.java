package hms_iceberg.bridge.variants;

import hms_iceberg.bridge.wire.Generation;
import java.math.BigInteger;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.parquet.schema.LogicalTypeAnnotation;
import org.apache.parquet.schema.LogicalTypeAnnotation.TimeUnit;
import org.apache.parquet.schema.PrimitiveType.PrimitiveTypeName;
import org.apache.parquet.schema.Type;
import org.apache.parquet.schema.Types;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.types.VariantType;

/**
 * The typed column that suits the variants at one place of some rows. A field gets one if a tenth of the rows have it and
 * all its values are of one type, as in Python's writer and in Java's. Types that Spark does not read from such columns
 * get none: time, UUID, and timestamps with nanoseconds.
 */
public final class ShreddedType {
  /** Kinds beside those of VariantBytes. */
  static final int OBJECTS = 100;
  static final int ARRAYS = 101;

  private static final String TYPED = "typed_value";
  private static final double LEAST_SHARE = 0.1;
  private static final int MOST_FIELDS = 300;

  /** OBJECTS, ARRAYS, or a primitive type; INT8 to INT64 also hold narrower integers, DECIMAL4 holds all decimals. */
  public final int kind;
  /** Of decimals. */
  public int precision;
  public int scale;
  /** Of objects, the types of fields by name, in the order of names. */
  public final TreeMap fields = new TreeMap();
  /** Of arrays. */
  public ShreddedType element;

  private ShreddedType(int kind) {
    this.kind = kind;
  }

  /** By the columns of some rows, the types of those of variants; null if none can be typed. */
  public static ShreddedType[] ofColumns(List rows, StructType schema) {
    ShreddedType[] types = new ShreddedType[schema.fields().length];
    boolean any = false;
    for (int i = 0; i < types.length; i++) {
      if (schema.fields()[i].dataType() instanceof VariantType) {
        List values = new ArrayList();
        for (int j = 0; j < rows.size(); j++) {
          InternalRow row = (InternalRow) rows.get(j);
          values.add(row.isNullAt(i) ? null : Generation.variant(row, i));
        }
        types[i] = of(values);
        any |= types[i] != null;
      }
    }
    return any ? types : null;
  }

  /** The columns of a file, by their dotted paths, of which a setting speaks: what it says of a value, of all typed ones. */
  public static List columns(String path, StructType schema, ShreddedType[] shredded) {
    List columns = new ArrayList();
    columns.add(path);
    for (int i = 0; shredded != null && i < shredded.length; i++) {
      String name = schema.fields()[i].name();
      if (shredded[i] != null && path.equals(name + ".value")) {
        leaves(shredded[i].column(), name, columns);
      }
    }
    return columns;
  }

  private static void leaves(Type type, String above, List columns) {
    String path = above + "." + type.getName();
    for (int i = 0; !type.isPrimitive() && i < type.asGroupType().getFieldCount(); i++) {
      leaves(type.asGroupType().getType(i), path, columns);
    }
    if (type.isPrimitive()) {
      columns.add(path);
    }
  }

  /**
   * The type that suits some variants.
   *
   * @param values of each row its value and its metadata; null for a row without
   * @return null if nothing can be typed
   */
  public static ShreddedType of(List values) {
    Seen root = new Seen();
    for (int i = 0; i < values.size(); i++) {
      byte[][] variant = (byte[][]) values.get(i);
      if (variant != null) {
        root.observe(variant[0], 0, new VariantBytes.Names(variant[1]), 0);
      }
    }
    return root.typed(root.rows);
  }

  /** The column `typed_value`. */
  public Type column() {
    if (kind == OBJECTS) {
      Types.GroupBuilder group = Types.optionalGroup();
      for (Iterator it = fields.entrySet().iterator(); it.hasNext();) {
        Map.Entry field = (Map.Entry) it.next();
        group.addField(((ShreddedType) field.getValue()).pair((String) field.getKey()));
      }
      return (Type) group.named(TYPED);
    }
    if (kind == ARRAYS) {
      Type repeated = (Type) ((Types.GroupBuilder) Types.repeatedGroup()).addField(element.pair("element")).named("list");
      Types.GroupBuilder group = Types.optionalGroup();
      return (Type) ((Types.GroupBuilder) group.as(LogicalTypeAnnotation.listType())).addField(repeated).named(TYPED);
    }
    return primitive();
  }

  private Type pair(String name) {
    Types.GroupBuilder group = Types.requiredGroup();
    group.addField((Type) ((Types.PrimitiveBuilder) Types.optional(PrimitiveTypeName.BINARY)).named("value"));
    return (Type) group.addField(column()).named(name);
  }

  private Type primitive() {
    switch (kind) {
      case VariantBytes.TRUE:
        return of(PrimitiveTypeName.BOOLEAN, null);
      case VariantBytes.INT8:
      case VariantBytes.INT8 + 1:
      case VariantBytes.INT8 + 2:
        return of(PrimitiveTypeName.INT32, LogicalTypeAnnotation.intType(8 << (kind - VariantBytes.INT8), true));
      case VariantBytes.INT64:
        return of(PrimitiveTypeName.INT64, LogicalTypeAnnotation.intType(64, true));
      case VariantBytes.FLOAT:
        return of(PrimitiveTypeName.FLOAT, null);
      case VariantBytes.DOUBLE:
        return of(PrimitiveTypeName.DOUBLE, null);
      case VariantBytes.DATE:
        return of(PrimitiveTypeName.INT32, LogicalTypeAnnotation.dateType());
      case VariantBytes.TIMESTAMPTZ:
      case VariantBytes.TIMESTAMP:
        boolean zoned = kind == VariantBytes.TIMESTAMPTZ;
        return of(PrimitiveTypeName.INT64, LogicalTypeAnnotation.timestampType(zoned, TimeUnit.MICROS));
      case VariantBytes.STRING:
        return of(PrimitiveTypeName.BINARY, LogicalTypeAnnotation.stringType());
      case VariantBytes.BINARY:
        return of(PrimitiveTypeName.BINARY, null);
      default:
        return decimal();
    }
  }

  private Type decimal() {
    LogicalTypeAnnotation annotation = LogicalTypeAnnotation.decimalType(scale, precision);
    if (precision <= 18) {
      return of(precision <= 9 ? PrimitiveTypeName.INT32 : PrimitiveTypeName.INT64, annotation);
    }
    Types.PrimitiveBuilder builder = (Types.PrimitiveBuilder) Types.optional(PrimitiveTypeName.FIXED_LEN_BYTE_ARRAY);
    builder = (Types.PrimitiveBuilder) builder.length(decimalBytes());
    return (Type) ((Types.PrimitiveBuilder) builder.as(annotation)).named(TYPED);
  }

  /** How many bytes decimals of the precision take. */
  int decimalBytes() {
    return BigInteger.TEN.pow(precision).subtract(BigInteger.ONE).bitLength() / 8 + 1;
  }

  private static Type of(PrimitiveTypeName name, LogicalTypeAnnotation annotation) {
    Types.PrimitiveBuilder builder = (Types.PrimitiveBuilder) Types.optional(name);
    if (annotation != null) {
      builder = (Types.PrimitiveBuilder) builder.as(annotation);
    }
    return (Type) builder.named(TYPED);
  }

  /** What was seen of the values at one place; a family is a type, or what its values have in common. */
  static final class Seen implements Comparable {
    private static final int MOST_OBSERVED = 1000;
    // Readers have a limit for levels of schemas, of which each level of a variant takes up to four.
    private static final int MOST_LEVELS = 20;
    private static final int NONE = -1;
    private static final int MIXED = -2;

    public int rows;
    private String name;
    private int family = NONE;
    /** Of integers their type, of decimals the digits. */
    private int widest;
    private int scale;
    private final Map fields = new HashMap();
    private Seen elements;

    void observe(byte[] bytes, int at, VariantBytes.Names names, int level) {
      rows++;
      int basic = VariantBytes.basic(bytes, at);
      if (basic == VariantBytes.OBJECT) {
        is(OBJECTS);
        if (level < MOST_LEVELS) {
          fields(bytes, at, names, level);
        }
      } else if (basic == VariantBytes.ARRAY) {
        is(ARRAYS);
        elements = elements == null ? new Seen() : elements;
        VariantBytes.Container container = new VariantBytes.Container();
        container.read(bytes, at);
        for (int i = 0; level < MOST_LEVELS && i < container.count; i++) {
          elements.observe(bytes, container.start(i), names, level + 1);
        }
      } else if (basic == VariantBytes.SHORT_STRING) {
        is(VariantBytes.STRING);
      } else {
        primitive(bytes, at);
      }
    }

    private void fields(byte[] bytes, int at, VariantBytes.Names names, int level) {
      VariantBytes.Container container = new VariantBytes.Container();
      container.read(bytes, at);
      for (int i = 0; i < container.count; i++) {
        String field = names.names[container.id(i)];
        Seen below = (Seen) fields.get(field);
        if (below == null && fields.size() < MOST_OBSERVED) {
          below = new Seen();
          below.name = field;
          fields.put(field, below);
        }
        if (below != null) {
          below.observe(bytes, container.start(i), names, level + 1);
        }
      }
    }

    private void primitive(byte[] bytes, int at) {
      int kind = VariantBytes.kind(bytes, at);
      if (kind >= VariantBytes.INT8 && kind <= VariantBytes.INT64) {
        is(VariantBytes.INT8);
        widest = Math.max(widest, kind);
      } else if (kind >= VariantBytes.DECIMAL4 && kind <= VariantBytes.DECIMAL16) {
        boolean first = family == NONE;
        is(first || (family == VariantBytes.DECIMAL4 && scale == bytes[at + 1]) ? VariantBytes.DECIMAL4 : MIXED);
        scale = bytes[at + 1];
        int digits = unscaled(bytes, at).abs().toString().length();
        widest = Math.max(widest, Math.max(digits, Math.max(scale, 1)));
      } else if (kind != VariantBytes.NULL) {
        is(kind == VariantBytes.FALSE ? VariantBytes.TRUE : kind);
      }
    }

    private void is(int found) {
      family = family == NONE || family == found ? found : MIXED;
    }

    /** Null for values that have no type in common, or are all null. */
    ShreddedType typed(int all) {
      if (family == OBJECTS) {
        ShreddedType objects = new ShreddedType(OBJECTS);
        List often = often(all);
        for (int i = 0; i < often.size(); i++) {
          ShreddedType field = ((Seen) often.get(i)).typed(all);
          if (field != null) {
            objects.fields.put(((Seen) often.get(i)).name, field);
          }
        }
        return objects.fields.isEmpty() ? null : objects;
      }
      if (family == ARRAYS) {
        ShreddedType arrays = new ShreddedType(ARRAYS);
        arrays.element = elements.typed(all);
        return arrays.element == null ? null : arrays;
      }
      if (family == NONE || family == MIXED || family > VariantBytes.STRING) {
        return null;
      }
      ShreddedType type = new ShreddedType(family == VariantBytes.INT8 ? widest : family);
      type.precision = widest;
      type.scale = scale;
      return family == VariantBytes.DECIMAL4 && (widest > 38 || scale < 0) ? null : type;
    }

    private List often(int all) {
      List often = new ArrayList();
      for (Iterator it = fields.values().iterator(); it.hasNext();) {
        Seen field = (Seen) it.next();
        if (field.rows >= all * LEAST_SHARE) {
          often.add(field);
        }
      }
      Collections.sort(often);
      return often.size() > MOST_FIELDS ? often.subList(0, MOST_FIELDS) : often;
    }

    public int compareTo(Object other) {
      Seen its = (Seen) other;
      return rows != its.rows ? its.rows - rows : name.compareTo(its.name);
    }
  }

  /** The unscaled value of a decimal. */
  static BigInteger unscaled(byte[] bytes, int at) {
    int size = VariantBytes.size(bytes, at) - 1;
    byte[] big = new byte[size];
    for (int i = 0; i < size; i++) {
      big[i] = bytes[at + 1 + size - i];
    }
    return new BigInteger(big);
  }
}
