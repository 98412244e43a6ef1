package hms_iceberg.bridge.parquet;

import hms_iceberg.bridge.columns.FieldIds;
import hms_iceberg.bridge.output.StoredValues;
import java.util.ArrayList;
import java.util.List;
import org.apache.parquet.io.api.Binary;
import org.apache.parquet.io.api.RecordConsumer;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/** On their way to the file, texts of UUIDs become 16 bytes, and fixed bytes are checked for their length. */
final class FixedBytes extends RecordConsumer {
  private final RecordConsumer consumer;
  private final Node root;
  private Node node;
  private final List above = new ArrayList();

  FixedBytes(RecordConsumer consumer, StructType schema) {
    this.consumer = consumer;
    this.root = Node.of(schema);
    this.node = root;
  }

  public void startField(String field, int index) {
    above.add(node);
    node = node == null ? null : node.child(index);
    consumer.startField(field, index);
  }

  public void endField(String field, int index) {
    node = (Node) above.remove(above.size() - 1);
    consumer.endField(field, index);
  }

  public void addBinary(Binary value) {
    if (node != null && node.length < 0) {
      consumer.addBinary(Binary.fromConstantByteArray(StoredValues.uuid(value.toStringUsingUTF8(), node.name)));
      return;
    }
    if (node != null && node.length > 0) {
      StoredValues.checkLength(value.length(), node.length, node.name);
    }
    consumer.addBinary(value);
  }

  public void startMessage() {
    consumer.startMessage();
  }

  public void endMessage() {
    consumer.endMessage();
  }

  public void startGroup() {
    consumer.startGroup();
  }

  public void endGroup() {
    consumer.endGroup();
  }

  public void addInteger(int value) {
    consumer.addInteger(value);
  }

  public void addLong(long value) {
    consumer.addLong(value);
  }

  public void addBoolean(boolean value) {
    consumer.addBoolean(value);
  }

  public void addFloat(float value) {
    consumer.addFloat(value);
  }

  public void addDouble(double value) {
    consumer.addDouble(value);
  }

  public void flush() {
    consumer.flush();
  }

  /** A group or a value of the file, as the consumer is told of it. */
  public static final class Node {
    private final String name;
    private final int length;
    private final Node[] children;

    public Node(String name, int length, Node[] children) {
      this.name = name;
      this.length = length;
      this.children = children;
    }

    public Node child(int index) {
      return children == null ? null : children[index];
    }

    public static Node of(StructType struct) {
      return new Node("", 0, children(struct));
    }

    private static Node[] children(StructType struct) {
      StructField[] fields = struct.fields();
      Node[] children = new Node[fields.length];
      for (int i = 0; i < fields.length; i++) {
        children[i] = of(fields[i].name(), fields[i].dataType(), new FieldIds(fields[i].metadata()), "");
      }
      return children;
    }

    /** Lists and maps have a repeated group between them and their values. */
    private static Node of(String name, DataType type, FieldIds ids, String path) {
      if (type instanceof StructType) {
        return new Node(name, 0, children((StructType) type));
      }
      if (type instanceof ArrayType) {
        Node element = of(name, ((ArrayType) type).elementType(), ids, path + "e");
        return new Node(name, 0, new Node[] {new Node(name, 0, new Node[] {element})});
      }
      if (type instanceof MapType) {
        Node key = of(name, ((MapType) type).keyType(), ids, path + "k");
        Node value = of(name, ((MapType) type).valueType(), ids, path + "v");
        return new Node(name, 0, new Node[] {new Node(name, 0, new Node[] {key, value})});
      }
      return new Node(name, ids.fixed(path), null);
    }
  }
}
