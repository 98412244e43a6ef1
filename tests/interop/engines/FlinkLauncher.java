import java.io.BufferedReader;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.Array;
import java.math.BigDecimal;
import java.time.Instant;
import java.time.LocalDateTime;
import java.time.LocalTime;
import java.time.ZoneOffset;
import java.util.Base64;
import java.util.Iterator;
import java.util.Map;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.table.api.EnvironmentSettings;
import org.apache.flink.table.api.TableEnvironment;
import org.apache.flink.table.api.TableResult;
import org.apache.flink.table.api.internal.TableEnvironmentImpl;
import org.apache.flink.types.Row;

/** Runs SQL of Flink in this process: a line is `batch` or `stream`, a space, and the statement in Base64. */
public class FlinkLauncher {
    public static void main(String[] args) throws Exception {
        PrintStream answers = new PrintStream(new FileOutputStream(FileDescriptor.out), true, "UTF-8");
        System.setOut(System.err);
        TableEnvironment batch = environment(false, args[0], args[1]);
        TableEnvironment stream = environment(true, args[0], args[1]);
        answers.println("{\"ready\": true}");
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, "UTF-8"));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            int space = line.indexOf(' ');
            String sql = new String(Base64.getDecoder().decode(line.substring(space + 1)), "UTF-8");
            String answer;
            try {
                answer = "{\"rows\": " + rows((line.startsWith("stream") ? stream : batch).executeSql(sql)) + "}";
            } catch (Throwable error) {
                Throwable cause = error;
                while (cause.getCause() != null) {
                    cause = cause.getCause();
                }
                answer = "{\"error\": " + text(error + ": " + cause) + "}";
            }
            answers.println(answer);
        }
    }

    private static TableEnvironment environment(boolean streaming, String uri, String warehouse) {
        Configuration settings = new Configuration();
        settings.setString("parallelism.default", "1");
        settings.setString("table.local-time-zone", "UTC");
        settings.setString("execution.checkpointing.interval", "1 s");
        settings.setString("taskmanager.memory.network.min", "16mb");
        settings.setString("taskmanager.memory.network.max", "16mb");
        EnvironmentSettings.Builder builder = EnvironmentSettings.newInstance().withConfiguration(settings);
        TableEnvironment made =
            TableEnvironmentImpl.create((streaming ? builder.inStreamingMode() : builder.inBatchMode()).build());
        made.executeSql("create catalog ice with ('type'='iceberg', 'catalog-type'='hive', 'cache-enabled'='false', "
            + "'uri'='" + uri + "', 'warehouse'='" + warehouse + "')");
        return made;
    }

    private static String rows(TableResult result) throws Exception {
        StringBuilder all = new StringBuilder("[");
        Iterator found = result.collect();
        while (found.hasNext()) {
            all.append(all.length() > 1 ? ", " : "").append(json(found.next()));
        }
        return all.append("]").toString();
    }

    private static String json(Object value) {
        if (value == null || value instanceof Boolean || value instanceof Integer || value instanceof Long) {
            return String.valueOf(value);
        }
        if (value instanceof Float || value instanceof Double) {
            double number = ((Number) value).doubleValue();
            if (Double.isNaN(number) || Double.isInfinite(number)) {
                return Double.isNaN(number) ? "\"nan\"" : number > 0 ? "\"inf\"" : "\"-inf\"";
            }
            return String.valueOf(number);
        }
        if (value instanceof BigDecimal) {
            return text(((BigDecimal) value).toPlainString());
        }
        if (value instanceof Instant) {
            return json(LocalDateTime.ofInstant((Instant) value, ZoneOffset.UTC));
        }
        if (value instanceof LocalDateTime) {
            LocalDateTime time = (LocalDateTime) value;
            return text(time.toLocalDate() + "T" + clock(time.toLocalTime()));
        }
        if (value instanceof LocalTime) {
            return text(clock((LocalTime) value));
        }
        if (value instanceof byte[]) {
            StringBuilder hexadecimal = new StringBuilder();
            byte[] bytes = (byte[]) value;
            for (int i = 0; i < bytes.length; i++) {
                hexadecimal.append(Integer.toHexString((bytes[i] & 255) | 256).substring(1));
            }
            return text(hexadecimal.toString());
        }
        if (value instanceof Row) {
            StringBuilder fields = new StringBuilder("[");
            Row row = (Row) value;
            for (int i = 0; i < row.getArity(); i++) {
                fields.append(i > 0 ? ", " : "").append(json(row.getField(i)));
            }
            return fields.append("]").toString();
        }
        if (value instanceof Map) {
            StringBuilder pairs = new StringBuilder("[");
            Iterator entries = ((Map) value).entrySet().iterator();
            while (entries.hasNext()) {
                Map.Entry entry = (Map.Entry) entries.next();
                pairs.append(pairs.length() > 1 ? ", " : "").append("[").append(json(entry.getKey())).append(", ");
                pairs.append(json(entry.getValue())).append("]");
            }
            return pairs.append("]").toString();
        }
        if (value.getClass().isArray()) {
            StringBuilder items = new StringBuilder("[");
            for (int i = 0; i < Array.getLength(value); i++) {
                items.append(i > 0 ? ", " : "").append(json(Array.get(value, i)));
            }
            return items.append("]").toString();
        }
        return text(value.toString());
    }

    private static String clock(LocalTime time) {
        int nanos = time.getNano();
        String micros = nanos == 0 ? "" : String.valueOf(1000000000 + nanos).substring(1);
        if (nanos % 1000 == 0 && nanos != 0) {
            micros = micros.substring(0, 6);
        }
        String seconds = String.valueOf(100 + time.getSecond()).substring(1);
        String minutes = String.valueOf(100 + time.getMinute()).substring(1);
        String hours = String.valueOf(100 + time.getHour()).substring(1);
        return hours + ":" + minutes + ":" + seconds + (nanos == 0 ? "" : "." + micros);
    }

    private static String text(String value) {
        StringBuilder quoted = new StringBuilder("\"");
        for (int i = 0; i < value.length(); i++) {
            char c = value.charAt(i);
            if (c == '"' || c == '\\' || c < ' ' || c > '~') {
                quoted.append("\\u").append(Integer.toHexString(c | 65536).substring(1));
            } else {
                quoted.append(c);
            }
        }
        return quoted.append("\"").toString();
    }
}
