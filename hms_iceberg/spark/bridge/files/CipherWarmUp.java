package hms_iceberg.bridge.files;

import hms_iceberg.bridge.wire.Generation;
import java.security.GeneralSecurityException;
import java.util.concurrent.atomic.AtomicBoolean;
import javax.crypto.Cipher;
import javax.crypto.spec.GCMParameterSpec;
import javax.crypto.spec.SecretKeySpec;

/**
 * The JVM uses the processor's instructions for AES-GCM only once it has compiled what calls them, which it does after
 * some number of calls; until then a megabyte takes 10 to 40 ms instead of 0.2. Pages of Parquet are large and so the
 * calls few: many small ones, once in a JVM and beside the tasks, take a tenth of a second of a processor. To decrypt is
 * other code than to encrypt; and of one length alone, the JVM would compile it for that length.
 */
public final class CipherWarmUp implements Runnable {
  private static final int ENCRYPTED = 40000;
  private static final int DECRYPTED = 20000;
  private static final int BLOCK_BYTES = 16;
  private static final int MOST_BYTES = 300;
  private static final AtomicBoolean BEGUN = new AtomicBoolean();

  private CipherWarmUp() {}

  public static void begin() {
    if (BEGUN.compareAndSet(false, true)) {
      Thread thread = Generation.thread(new CipherWarmUp(), "iceberg-cipher");
      thread.setDaemon(true);
      thread.start();
    }
  }

  public void run() {
    try {
      SecretKeySpec key = new SecretKeySpec(new byte[BLOCK_BYTES], "AES");
      GCMParameterSpec nonce = new GCMParameterSpec(8 * BLOCK_BYTES, new byte[BLOCK_BYTES]);
      encrypt(key, nonce);
      decrypt(key, nonce);
    } catch (GeneralSecurityException e) {
      return; // whoever needs the cipher tells
    }
  }

  private static void encrypt(SecretKeySpec key, GCMParameterSpec nonce) throws GeneralSecurityException {
    byte[] block = new byte[BLOCK_BYTES];
    byte[] encrypted = new byte[2 * BLOCK_BYTES];
    Cipher cipher = cipher(Cipher.ENCRYPT_MODE, key, nonce);
    for (int i = 0; i < ENCRYPTED; i++) {
      cipher.update(block, 0, BLOCK_BYTES, encrypted, 0);
    }
  }

  private static void decrypt(SecretKeySpec key, GCMParameterSpec nonce) throws GeneralSecurityException {
    byte[][] encrypted = new byte[MOST_BYTES][];
    for (int i = 0; i < MOST_BYTES; i++) {
      Cipher cipher = cipher(Cipher.ENCRYPT_MODE, key, nonce);
      cipher.updateAAD(new byte[BLOCK_BYTES]);
      encrypted[i] = cipher.doFinal(new byte[i + 1]);
    }
    byte[] decrypted = new byte[MOST_BYTES];
    Cipher cipher = cipher(Cipher.DECRYPT_MODE, key, nonce);
    for (int i = 0; i < DECRYPTED; i++) {
      byte[] some = encrypted[i % MOST_BYTES];
      cipher.init(Cipher.DECRYPT_MODE, key, nonce);
      cipher.updateAAD(new byte[BLOCK_BYTES]);
      cipher.doFinal(some, 0, some.length, decrypted, 0);
    }
  }

  private static Cipher cipher(int mode, SecretKeySpec key, GCMParameterSpec nonce) throws GeneralSecurityException {
    Cipher cipher = Cipher.getInstance("AES/GCM/NoPadding");
    cipher.init(mode, key, nonce);
    return cipher;
  }
}
