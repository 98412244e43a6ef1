package encryption;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Base64;
import java.util.HashMap;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.iceberg.encryption.Ciphers;
import org.apache.iceberg.encryption.KeyManagementClient;

/** The keys of a keystore file for Apache Iceberg, which has no client of its own for one. */
public class KeystoreKeys implements KeyManagementClient {
  private static final Pattern ENTRY = Pattern.compile("\"([^\"]+)\"\\s*:\\s*\"([^\"]+)\"");

  private final Map<String, byte[]> keys = new HashMap<>();

  @Override
  public void initialize(Map<String, String> properties) {
    try {
      byte[] content = Files.readAllBytes(Path.of(properties.get("kms.keystore.path")));
      Matcher found = ENTRY.matcher(new String(content, StandardCharsets.UTF_8));
      while (found.find()) {
        keys.put(found.group(1), Base64.getDecoder().decode(found.group(2)));
      }
    } catch (java.io.IOException error) {
      throw new java.io.UncheckedIOException(error);
    }
  }

  @Override
  public ByteBuffer wrapKey(ByteBuffer key, String wrappingKeyId) {
    return ByteBuffer.wrap(new Ciphers.AesGcmEncryptor(keys.get(wrappingKeyId)).encrypt(bytes(key), null));
  }

  @Override
  public ByteBuffer unwrapKey(ByteBuffer wrappedKey, String wrappingKeyId) {
    return ByteBuffer.wrap(new Ciphers.AesGcmDecryptor(keys.get(wrappingKeyId)).decrypt(bytes(wrappedKey), null));
  }

  private static byte[] bytes(ByteBuffer buffer) {
    byte[] content = new byte[buffer.remaining()];
    buffer.duplicate().get(content);
    return content;
  }
}
