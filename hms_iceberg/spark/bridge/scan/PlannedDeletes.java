package hms_iceberg.bridge.scan;

import com.fasterxml.jackson.databind.JsonNode;
import hms_iceberg.bridge.files.DeleteBlock;
import hms_iceberg.bridge.files.DeleteFile;
import hms_iceberg.bridge.files.DeleteRun;
import hms_iceberg.bridge.files.EqualityDeletes;
import hms_iceberg.bridge.wire.Answer;
import hms_iceberg.bridge.wire.Hex;
import hms_iceberg.bridge.wire.Json;
import hms_iceberg.bridge.wire.SentOnce;
import hms_iceberg.bridge.wire.Texts;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.spark.SparkContext;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;

/**
 * The delete files of one planned scan, and which of them apply to which data file: runs of position delete files, and
 * groups of equality delete files. What very many data files have in common is not sent with each task.
 */
final class PlannedDeletes {
  /** How many files, and positions, a block has at most; one file may have more positions. */
  private static final int BLOCK_FILES = 1024;
  private static final long BLOCK_POSITIONS = 2000000;
  /** So often has a delete file to be named by data files before it is not sent with their tasks. */
  private static final int OFTEN = 8;
  private static final long VERY_OFTEN = 1 << 14;
  private static final DeleteRun[] NO_RUNS = new DeleteRun[0];
  private static final SentOnce[] NO_GROUPS = new SentOnce[0];

  private final Texts paths;
  private final String[] formats;
  private final int[] formatOf;
  private final long[] sizes;
  private final long[] sequenceNumbers;
  private final long[] offsets;
  private final long[] lengths;
  private final long[] recordCounts;
  /** What each file is encrypted by, empty for one that is not; null if none is. */
  private final byte[][] keys;
  /** Where the runs of each data file begin, and one more. */
  private final int[] runs;
  private final int[] firsts;
  private final int[] ends;
  /** Where the groups of each data file begin, and one more; null if there is no group. */
  private final int[] grouped;
  private final int[] groupOf;
  private final String[] groupKeys;
  private final StructType[] groupColumns;
  private final int[] groupFiles;
  private final int[] filesOfGroups;
  /** Where blocks begin, and one more; null until they are cut. */
  private int[] blockStarts;
  private SentOnce[] blocks;
  private SentOnce[] groups;

  PlannedDeletes(Answer plan, int dataFiles) {
    JsonNode header = plan.header();
    int count = header.get("delete_files").asInt();
    this.paths = plan.takeTexts(count);
    this.sizes = plan.takeLongs(count);
    this.sequenceNumbers = plan.takeLongs(count);
    this.offsets = plan.takeLongs(count);
    this.lengths = plan.takeLongs(count);
    this.recordCounts = plan.takeLongs(count);
    this.formatOf = plan.takeInts(count);
    this.formats = Json.texts(header.get("delete_formats"));
    this.keys = header.get("keyed_deletes").asBoolean() ? plan.takeBlobs(count) : null;
    this.runs = plan.takeInts(dataFiles + 1);
    this.firsts = plan.takeInts(runs[dataFiles]);
    this.ends = plan.takeInts(runs[dataFiles]);
    JsonNode told = header.get("equality_deletes");
    this.groupKeys = new String[told.size()];
    this.groupColumns = new StructType[told.size()];
    for (int i = 0; i < groupKeys.length; i++) {
      groupKeys[i] = Json.at(told, i).get("key").asText();
      groupColumns[i] = (StructType) DataType.fromJson(Json.at(told, i).get("columns").toString());
    }
    if (groupKeys.length == 0) {
      this.grouped = null;
      this.groupOf = null;
      this.groupFiles = null;
      this.filesOfGroups = null;
    } else {
      this.grouped = plan.takeInts(dataFiles + 1);
      this.groupOf = plan.takeInts(grouped[dataFiles]);
      this.groupFiles = plan.takeInts(groupKeys.length + 1);
      this.filesOfGroups = plan.takeInts(groupFiles[groupKeys.length]);
    }
  }

  boolean has(int dataFile) {
    return runs[dataFile] < runs[dataFile + 1] || grouped != null && grouped[dataFile] < grouped[dataFile + 1];
  }

  /** Sends to executors what very many data files have in common; once, whatever the number of queries. */
  synchronized void send(SparkContext context) {
    if (blocks != null) {
      return;
    }
    sendGroups(context);
    long[] named = named();
    blockStarts = cut(named);
    SentOnce[] sent = new SentOnce[blockStarts.length - 1];
    for (int i = 0; i < sent.length; i++) {
      int from = blockStarts[i];
      int until = blockStarts[i + 1];
      long times = 0;
      for (int j = from; j < until; j++) {
        times += named[j];
      }
      if (isOften(times, until - from)) {
        sent[i] = SentOnce.toExecutors(new DeleteBlock(files(from, until), key(from, until)), context);
      }
    }
    blocks = sent;
  }

  private static boolean isOften(long times, int files) {
    return times >= VERY_OFTEN && times >= (long) OFTEN * files;
  }

  private void sendGroups(SparkContext context) {
    groups = new SentOnce[groupKeys.length];
    int[] dataFiles = new int[groups.length];
    for (int i = 0; groupOf != null && i < groupOf.length; i++) {
      dataFiles[groupOf[i]]++;
    }
    for (int i = 0; i < groups.length; i++) {
      DeleteFile[] files = new DeleteFile[groupFiles[i + 1] - groupFiles[i]];
      for (int j = 0; j < files.length; j++) {
        files[j] = file(filesOfGroups[groupFiles[i] + j]);
      }
      EqualityDeletes group = new EqualityDeletes(groupKeys[i], groupColumns[i], files);
      groups[i] = isOften((long) dataFiles[i] * files.length, files.length)
          ? SentOnce.toExecutors(group, context) : SentOnce.withTask(group);
    }
  }

  /** Where blocks begin: what is about one data file is not in one block with what is about many. */
  private int[] cut(long[] named) {
    List starts = new ArrayList();
    int from = 0;
    long positions = 0;
    for (int i = 0; i < paths.size(); i++) {
      boolean isFull = i - from == BLOCK_FILES || positions + recordCounts[i] > BLOCK_POSITIONS;
      if (i > from && (isFull || named[i] > 1 != named[i - 1] > 1)) {
        starts.add(Integer.valueOf(from));
        from = i;
        positions = 0;
      }
      positions += recordCounts[i];
    }
    starts.add(Integer.valueOf(from));
    starts.add(Integer.valueOf(paths.size()));
    int[] cut = new int[starts.size()];
    for (int i = 0; i < cut.length; i++) {
      cut[i] = ((Integer) starts.get(i)).intValue();
    }
    return cut;
  }

  /** By how many data files each delete file is named. */
  private long[] named() {
    long[] named = new long[paths.size() + 1];
    for (int i = 0; i < firsts.length; i++) {
      named[firsts[i]]++;
      named[ends[i]]--;
    }
    for (int i = 1; i < named.length; i++) {
      named[i] += named[i - 1];
    }
    return named;
  }

  /** Null if executors look up each file by itself: a large one, of which they may read a part, and vectors. */
  private String key(int from, int until) {
    if (until - from == 1) {
      return null;
    }
    try {
      MessageDigest digest = MessageDigest.getInstance("SHA-256");
      for (int i = from; i < until; i++) {
        if (lengths[i] > 0) {
          return null;
        }
        digest.update((paths.text(i) + "@" + offsets[i] + "\n").getBytes(StandardCharsets.UTF_8));
      }
      return "block " + Hex.of(digest.digest());
    } catch (NoSuchAlgorithmException e) {
      throw new IllegalStateException(e);
    }
  }

  private DeleteFile[] files(int from, int until) {
    DeleteFile[] files = new DeleteFile[until - from];
    for (int i = 0; i < files.length; i++) {
      files[i] = file(from + i);
    }
    return files;
  }

  private DeleteFile file(int number) {
    return new DeleteFile(
        paths.text(number), formats[formatOf[number]], sizes[number], sequenceNumbers[number], offsets[number],
        lengths[number], recordCounts[number], keys == null || keys[number].length == 0 ? null : keys[number]);
  }

  /** The position delete files of a data file, after they were sent. */
  synchronized DeleteRun[] positions(int dataFile) {
    List found = new ArrayList();
    for (int run = runs[dataFile]; run < runs[dataFile + 1]; run++) {
      int next = firsts[run];
      for (int block = blockOf(next); next < ends[run]; block++) {
        int until = Math.min(ends[run], blockStarts[block + 1]);
        found.add(blocks[block] == null ? inTask(next, until)
            : new DeleteRun(blocks[block], next - blockStarts[block], until - blockStarts[block]));
        next = until;
      }
    }
    return (DeleteRun[]) found.toArray(NO_RUNS);
  }

  private int blockOf(int number) {
    int place = Arrays.binarySearch(blockStarts, number);
    return place < 0 ? -place - 2 : place;
  }

  private DeleteRun inTask(int from, int until) {
    return new DeleteRun(SentOnce.withTask(new DeleteBlock(files(from, until), null)), 0, until - from);
  }

  /** The equality deletes of a data file, after they were sent. */
  synchronized SentOnce[] groups(int dataFile) {
    if (grouped == null) {
      return NO_GROUPS;
    }
    SentOnce[] found = new SentOnce[grouped[dataFile + 1] - grouped[dataFile]];
    for (int i = 0; i < found.length; i++) {
      found[i] = groups[groupOf[grouped[dataFile] + i]];
    }
    return found;
  }
}
