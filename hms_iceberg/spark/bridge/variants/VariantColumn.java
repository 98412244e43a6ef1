package hms_iceberg.bridge.variants;

import com.fasterxml.jackson.databind.node.ArrayNode;
import java.math.BigInteger;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Iterator;
import java.util.Map;
import org.apache.parquet.column.ColumnWriter;
import org.apache.parquet.io.api.Binary;
import org.apache.parquet.schema.GroupType;
import org.apache.parquet.schema.Type;

/**
 * Writes the variants of one column of a Parquet file, whole or shredded, straight into the columns of a row group.
 *
 * <p>Source: Apache Parquet, "Variant Shredding".
 */
public final class VariantColumn {
  private final Node root;
  private final int metadataPlace;
  private final VariantBytes.KnownNames known = new VariantBytes.KnownNames();
  private ColumnWriter metadata;
  private byte[] bytes;
  private VariantBytes.Names names;

  /**
   * A column that is not yet bound to a row group.
   *
   * @param group the column in the file, which begins with its metadata and its value in any order
   * @param type null if variants stay whole
   */
  public VariantColumn(GroupType group, ShreddedType type) {
    this.root = new Node(type, group.isRepetition(Type.Repetition.OPTIONAL) ? 1 : 0, 0);
    this.metadataPlace = group.getFieldIndex("metadata");
  }

  /** Takes its writers from those of all leaves, of which its own begin at a place. */
  public void to(ColumnWriter[] columns, int first) {
    metadata = columns[first + metadataPlace];
    root.to(columns, first + 1 - metadataPlace, first + 2);
  }

  public void writeNull() {
    metadata.writeNull(0, 0);
    root.writeNull(0, 0);
  }

  /** Writes a variant; its bytes are not kept. */
  public void write(byte[] value, byte[] meta) {
    metadata.write(Binary.fromReusedByteArray(meta), 0, root.level);
    if (root.type == null) {
      root.value.write(Binary.fromReusedByteArray(value), 0, root.level);
      return;
    }
    bytes = value;
    try {
      names = known.of(meta);
      write(root, 0, 0);
    } catch (ArrayIndexOutOfBoundsException e) {
      throw new IllegalArgumentException("InvalidInputError: a variant is damaged, and cannot be shredded.", e);
    }
  }

  /** Adds the places of the leaves, among those of the file, of which some value is NaN. */
  public void addNanLeaves(ArrayNode places) {
    root.addNanLeaves(places);
  }

  private void write(Node node, int at, int repetition) {
    int basic = VariantBytes.basic(bytes, at);
    if (node.type == null) {
      node.writeValue(bytes, at, repetition);
    } else if (node.type.kind == ShreddedType.OBJECTS && basic == VariantBytes.OBJECT) {
      object(node, at, repetition);
    } else if (node.type.kind == ShreddedType.ARRAYS && basic == VariantBytes.ARRAY) {
      array(node, at, repetition);
    } else if (node.typed != null && node.writeTyped(bytes, at, basic, repetition)) {
      node.value.writeNull(repetition, node.level);
    } else {
      node.writeValue(bytes, at, repetition);
      node.writeNullTyped(repetition, node.level);
    }
  }

  /** Fields without a column of their own stay together, as an object. */
  private void object(Node node, int at, int repetition) {
    VariantBytes.Container container = node.container;
    container.read(bytes, at);
    int[] places = node.places(names);
    int[] ids = null;
    int[] starts = null;
    int others = 0;
    int turn = ++node.turn;
    for (int i = 0; i < container.count; i++) {
      int id = container.id(i);
      int place = places[id];
      if (place >= 0 && node.seen[place] != turn) {
        node.seen[place] = turn;
        write(node.children[place], container.start(i), repetition);
      } else {
        if (ids == null) {
          ids = new int[container.count];
          starts = new int[container.count];
        }
        ids[others] = id;
        starts[others++] = container.start(i);
      }
    }
    for (int i = 0; i < node.children.length; i++) {
      if (node.seen[i] != turn) {
        node.children[i].writeNull(repetition, node.level + 1);
      }
    }
    if (others == 0) {
      node.value.writeNull(repetition, node.level);
    } else {
      byte[] rest = VariantBytes.object(bytes, ids, starts, others);
      node.value.write(Binary.fromReusedByteArray(rest), repetition, node.level + 1);
    }
  }

  private void array(Node node, int at, int repetition) {
    node.value.writeNull(repetition, node.level);
    node.container.read(bytes, at);
    Node element = node.children[0];
    if (node.container.count == 0) {
      element.writeNull(repetition, node.level + 1);
    }
    for (int i = 0; i < node.container.count; i++) {
      write(element, node.container.start(i), i == 0 ? repetition : element.repetition);
    }
  }

  /** A pair of the columns `value` and `typed_value`; the variant itself, a field of an object, or an array's element. */
  public static final class Node {
    /** Null if there is no typed column. */
    public final ShreddedType type;
    /** Of definition, where there is the pair. */
    final int level;
    private final int repetition;
    private final Node[] children;
    /** Of fields, where they are among the children. */
    private final Map fields = new HashMap();
    private final VariantBytes.Container container = new VariantBytes.Container();
    /** The turn in which a child was written last. */
    private final int[] seen;
    private int turn;
    private ColumnWriter value;
    private ColumnWriter typed;
    private int typedLeaf;
    private boolean hasNan;
    private BigInteger limit;

    public Node(ShreddedType type, int level, int repetition) {
      this.type = type;
      this.level = level;
      this.repetition = repetition;
      if (type != null && type.kind == ShreddedType.ARRAYS) {
        children = new Node[] {new Node(type.element, level + 2, repetition + 1)};
      } else {
        children = new Node[type == null ? 0 : type.fields.size()];
        Iterator it = type == null ? null : type.fields.entrySet().iterator();
        for (int i = 0; i < children.length; i++) {
          Map.Entry field = (Map.Entry) it.next();
          children[i] = new Node((ShreddedType) field.getValue(), level + 1, repetition);
          fields.put(field.getKey(), Integer.valueOf(i));
        }
      }
      seen = new int[children.length];
      if (type != null && type.kind == VariantBytes.DECIMAL4) {
        limit = BigInteger.TEN.pow(type.precision);
      }
    }

    /** Takes its writers; returns the place after the last leaf of the typed column. */
    public int to(ColumnWriter[] columns, int valueLeaf, int firstTyped) {
      value = columns[valueLeaf];
      int next = firstTyped;
      if (type != null && children.length == 0) {
        typedLeaf = next;
        typed = columns[next++];
      }
      for (int i = 0; i < children.length; i++) {
        next = children[i].to(columns, next, next + 1);
      }
      return next;
    }

    /** The children's places of names by their numbers, -1 of those without. */
    int[] places(VariantBytes.Names names) {
      int[] places = (int[]) names.places.get(this);
      if (places == null) {
        places = new int[names.names.length];
        for (int i = 0; i < places.length; i++) {
          Object found = fields.get(names.names[i]);
          places[i] = found == null ? -1 : ((Integer) found).intValue();
        }
        names.places.put(this, places);
      }
      return places;
    }

    public void addNanLeaves(ArrayNode places) {
      if (hasNan) {
        places.add(typedLeaf);
      }
      for (int i = 0; i < children.length; i++) {
        children[i].addNanLeaves(places);
      }
    }

    public void writeNull(int repetition, int level) {
      value.writeNull(repetition, level);
      writeNullTyped(repetition, level);
    }

    void writeNullTyped(int repetition, int level) {
      if (typed != null) {
        typed.writeNull(repetition, level);
      }
      for (int i = 0; i < children.length; i++) {
        children[i].writeNull(repetition, level);
      }
    }

    void writeValue(byte[] bytes, int at, int repetition) {
      value.write(
          Binary.fromReusedByteArray(bytes, at, VariantBytes.end(bytes, at) - at), repetition, level + 1);
    }

    /** False for a value of another type, or one that the column cannot hold. */
    boolean writeTyped(byte[] bytes, int at, int basic, int repetition) {
      if (type.kind == VariantBytes.STRING) {
        return writeText(bytes, at, basic, repetition);
      }
      if (basic != VariantBytes.PRIMITIVE) {
        return false;
      }
      int kind = VariantBytes.kind(bytes, at);
      if (type.kind == VariantBytes.DECIMAL4) {
        return kind >= VariantBytes.DECIMAL4 && kind <= VariantBytes.DECIMAL16 && bytes[at + 1] == type.scale
            && writeDecimal(ShreddedType.unscaled(bytes, at), repetition);
      }
      if (type.kind >= VariantBytes.INT8 && type.kind <= VariantBytes.INT64) {
        if (kind < VariantBytes.INT8 || kind > type.kind) {
          return false;
        }
        writeNumber(VariantBytes.signed(bytes, at + 1, VariantBytes.size(bytes, at)),
            type.kind == VariantBytes.INT64, repetition);
        return true;
      }
      if (type.kind == VariantBytes.TRUE && (kind == VariantBytes.TRUE || kind == VariantBytes.FALSE)) {
        typed.write(kind == VariantBytes.TRUE, repetition, level + 1);
        return true;
      }
      return kind == type.kind && writeOther(bytes, at, repetition);
    }

    private boolean writeText(byte[] bytes, int at, int basic, int repetition) {
      if (!VariantBytes.isString(bytes, at)) {
        return false;
      }
      int start = at + (basic == VariantBytes.SHORT_STRING ? 1 : 5);
      int length = VariantBytes.end(bytes, at) - start;
      typed.write(Binary.fromReusedByteArray(bytes, start, length), repetition, level + 1);
      return true;
    }

    private boolean writeOther(byte[] bytes, int at, int repetition) {
      int size = VariantBytes.size(bytes, at);
      switch (type.kind) {
        case VariantBytes.DOUBLE:
          double number = Double.longBitsToDouble(VariantBytes.signed(bytes, at + 1, 8));
          hasNan |= number != number;
          typed.write(number, repetition, level + 1);
          break;
        case VariantBytes.FLOAT:
          float single = Float.intBitsToFloat((int) VariantBytes.signed(bytes, at + 1, 4));
          hasNan |= single != single;
          typed.write(single, repetition, level + 1);
          break;
        case VariantBytes.BINARY:
          typed.write(Binary.fromReusedByteArray(bytes, at + 5, size - 4), repetition, level + 1);
          break;
        default:
          writeNumber(VariantBytes.signed(bytes, at + 1, size), type.kind != VariantBytes.DATE, repetition);
      }
      return true;
    }

    private void writeNumber(long number, boolean wide, int repetition) {
      if (wide) {
        typed.write(number, repetition, level + 1);
      } else {
        typed.write((int) number, repetition, level + 1);
      }
    }

    private boolean writeDecimal(BigInteger unscaled, int repetition) {
      if (unscaled.abs().compareTo(limit) >= 0) {
        return false;
      }
      if (type.precision <= 18) {
        writeNumber(unscaled.longValue(), type.precision > 9, repetition);
        return true;
      }
      byte[] fixed = new byte[type.decimalBytes()];
      byte[] number = unscaled.toByteArray();
      Arrays.fill(fixed, (byte) (unscaled.signum() < 0 ? -1 : 0));
      System.arraycopy(number, 0, fixed, fixed.length - number.length, number.length);
      typed.write(Binary.fromConstantByteArray(fixed), repetition, level + 1);
      return true;
    }
  }
}
