package hms_iceberg.bridge.wire;

import java.lang.ref.SoftReference;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * Keeps what was used last, up to a number of bytes; two tasks that want the same load it once. A value that is larger by
 * itself is shared while it is used, and goes when memory is needed.
 */
public final class BoundedCache {
  private static final long BYTES_OF_SLOT = 200;

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
      Object value = slot.large == null ? slot.value : slot.large.get();
      if (!slot.loaded || slot.large != null && value == null) {
        try {
          value = loader.load();
        } catch (Exception e) {
          forget(key, slot);
          throw e;
        }
        slot.loaded = true;
        keep(key, slot, value, loader.bytes());
      }
      return value;
    }
  }

  private void keep(String key, Slot slot, Object value, long bytes) {
    if (bytes > capacity) {
      slot.value = null;
      slot.large = new SoftReference(value);
      count(key, slot, BYTES_OF_SLOT + 2L * key.length());
    } else {
      slot.value = value;
      slot.large = null;
      count(key, slot, bytes);
    }
  }

  private void forget(String key, Slot slot) {
    synchronized (slots) {
      if (slots.get(key) == slot) {
        slots.remove(key);
        total -= slot.bytes;
      }
    }
  }

  private void count(String key, Slot slot, long bytes) {
    synchronized (slots) {
      if (slots.get(key) != slot) {
        return;
      }
      total += bytes - slot.bytes;
      slot.bytes = bytes;
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
    /** In its place, if it is larger than all that is kept. */
    SoftReference large;
    public long bytes;
  }
}
