package hms_iceberg.bridge.wire;

import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.Map;

/** Keeps what was used last, up to a number of bytes; two tasks that want the same load it once. */
public final class BoundedCache {
  private final long capacity;
  private final Map slots = new LinkedHashMap(16, 0.75f, true);
  private long total;

  public BoundedCache(long capacity) {
    this.capacity = capacity;
  }

  public Object get(String key, Loader loader) throws Exception {
    Slot slot;
    synchronized (slots) {
      slot = (Slot) slots.get(key);
      if (slot == null) {
        slot = new Slot();
        slots.put(key, slot);
      }
    }
    synchronized (slot) {
      if (!slot.loaded) {
        try {
          slot.value = loader.load();
        } catch (Exception e) {
          forget(key, slot);
          throw e;
        }
        slot.loaded = true;
        count(key, slot, loader.bytes());
      }
      return slot.value;
    }
  }

  private void forget(String key, Slot slot) {
    synchronized (slots) {
      if (slots.get(key) == slot) {
        slots.remove(key);
      }
    }
  }

  private void count(String key, Slot slot, long bytes) {
    synchronized (slots) {
      if (slots.get(key) != slot) {
        return;
      }
      slot.bytes = bytes;
      total += bytes;
      for (Iterator it = slots.entrySet().iterator(); total > capacity && it.hasNext();) {
        Slot oldest = (Slot) ((Map.Entry) it.next()).getValue();
        if (oldest.bytes > 0 && oldest != slot) {
          total -= oldest.bytes;
          it.remove();
        }
      }
    }
  }

  /** Loads a value, and afterwards knows about how many bytes it takes. */
  public interface Loader {
    Object load() throws Exception;

    long bytes();
  }

  static final class Slot {
    boolean loaded;
    public Object value;
    public long bytes;
  }
}
