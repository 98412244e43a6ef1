package hms_iceberg.bridge;

import java.security.GeneralSecurityException;
import java.util.concurrent.atomic.AtomicBoolean;
import javax.crypto.Cipher;
import javax.crypto.spec.GCMParameterSpec;
import javax.crypto.spec.SecretKeySpec;

/**
 * The JVM uses the processor's instructions for AES-GCM only once it has compiled what calls them, which it does after
 * some number of calls; until then it is ten to twenty times as slow. Pages of Parquet are large and so the calls few:
 * many small ones, once in a JVM and beside the tasks, take a tenth of a second.
 */
final class CipherWarmUp implements Runnable {
  private static final int CALLS = 40000;
  private static final int BLOCK_BYTES = 16;
  private static final AtomicBoolean BEGUN = new AtomicBoolean();

  private CipherWarmUp() {}

  static void begin() {
    if (BEGUN.compareAndSet(false, true)) {
      Thread thread = Generation.thread(new CipherWarmUp(), "iceberg-cipher");
      thread.setDaemon(true);
      thread.start();
    }
  }

  public void run() {
    byte[] block = new byte[BLOCK_BYTES];
    byte[] encrypted = new byte[2 * BLOCK_BYTES];
    try {
      Cipher cipher = Cipher.getInstance("AES/GCM/NoPadding");
      cipher.init(Cipher.ENCRYPT_MODE, new SecretKeySpec(new byte[BLOCK_BYTES], "AES"),
          new GCMParameterSpec(8 * BLOCK_BYTES, new byte[BLOCK_BYTES]));
      for (int i = 0; i < CALLS; i++) {
        cipher.update(block, 0, BLOCK_BYTES, encrypted, 0);
      }
    } catch (GeneralSecurityException e) {
      throw new IllegalStateException(e); // the tasks tell
    }
  }
}
