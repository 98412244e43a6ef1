package hms_iceberg.bridge.wire;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.EOFException;
import java.io.IOException;
import java.net.SocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.SocketChannel;
import java.util.HashSet;
import java.util.Set;
import java.util.concurrent.ConcurrentLinkedDeque;

/**
 * The way to the Python process of a session (`bridge_server.py` has the other end): a socket in a folder that only this
 * user can enter. Each question goes with the session's secret. A connection takes one question after another.
 */
public final class PythonSocket {
  private static final int MOST_IDLE = 8;
  private static final int PART = 1048576; // of a transfer: Java copies each into memory outside of its heap

  private final SocketAddress address;
  private final byte[] secret;
  private final SocketChannel alive;
  private final ConcurrentLinkedDeque idle = new ConcurrentLinkedDeque();
  private volatile boolean closed;
  /** The names of the questions of which nobody knows the outcome if their answer does not come. */
  final Set commits = new HashSet();

  public PythonSocket(JsonNode told) throws IOException {
    this.address = Generation.address(told);
    this.secret = Hex.bytes(told.get("secret").asText());
    for (int i = 0; i < told.get("commits").size(); i++) {
      commits.add(Json.at(told.get("commits"), i).asText());
    }
    this.alive = connected(); // Python serves this session until it ends
    send(alive, new byte[0]);
  }

  /** A connection for one question; `done` gives it back. */
  SocketChannel connection() throws IOException {
    SocketChannel channel = (SocketChannel) idle.pollFirst();
    return channel == null ? connected() : channel;
  }

  private SocketChannel connected() throws IOException {
    return SocketChannel.open(address);
  }

  /** Takes back a connection whose last answer has come. */
  void done(SocketChannel channel) throws IOException {
    if (idle.size() < MOST_IDLE) {
      idle.addFirst(channel);
    } else {
      channel.close();
    }
    if (closed) {
      close();
    }
  }

  public byte[] ask(SocketChannel channel, byte[] question) throws IOException {
    send(channel, question);
    ByteBuffer length = ByteBuffer.allocate(8);
    receive(channel, length);
    byte[] answer = new byte[(int) length.getLong(0)];
    receive(channel, ByteBuffer.wrap(answer));
    return answer;
  }

  private void send(SocketChannel channel, byte[] question) throws IOException {
    ByteBuffer buffer = ByteBuffer.allocate(secret.length + 8 + question.length);
    buffer.put(secret).putLong(question.length).put(question).position(0);
    while (takePart(buffer)) {
      channel.write(buffer);
    }
  }

  private static void receive(SocketChannel channel, ByteBuffer buffer) throws IOException {
    while (takePart(buffer)) {
      if (channel.read(buffer) < 0) {
        throw new EOFException("the connection has ended");
      }
    }
  }

  /** Limits a buffer to what is transferred next; false if that is nothing. */
  private static boolean takePart(ByteBuffer buffer) {
    int at = buffer.position();
    buffer.limit(at + Math.min(PART, buffer.capacity() - at));
    return buffer.hasRemaining();
  }

  /** Lets Python go. What is under way is answered. */
  public void close() {
    closed = true;
    for (SocketChannel each = alive; each != null; each = (SocketChannel) idle.pollFirst()) {
      try {
        each.close();
      } catch (IOException e) {
        // It is closed for Python, too, when this process ends.
      }
    }
  }
}
