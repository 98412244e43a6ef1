package hms_iceberg.bridge.wire;

import java.lang.ref.PhantomReference;
import java.lang.ref.ReferenceQueue;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

/** Does something when nobody has an object any more; Java has one of its own since 9. */
public final class Cleaner implements Runnable {
  private final ReferenceQueue gone = new ReferenceQueue();
  private final Set known = ConcurrentHashMap.newKeySet();

  private Cleaner() {}

  public static Cleaner create() {
    Cleaner cleaner = new Cleaner();
    Thread thread = Generation.thread(cleaner, "hms_iceberg-cleaner");
    thread.setDaemon(true);
    thread.start();
    return cleaner;
  }

  public void register(Object object, Runnable then) {
    known.add(new Watched(object, gone, then));
  }

  public void run() {
    while (true) {
      try {
        Watched each = (Watched) gone.remove();
        known.remove(each);
        each.then.run();
      } catch (InterruptedException e) {
        return;
      } catch (RuntimeException e) {
        // What is gone cannot be helped; the others still can.
      }
    }
  }

  static final class Watched extends PhantomReference {
    final Runnable then;

    Watched(Object object, ReferenceQueue gone, Runnable then) {
      super(object, gone);
      this.then = then;
    }
  }
}
