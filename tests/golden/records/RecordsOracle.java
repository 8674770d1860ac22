// Apache Kafka's own record classes as an oracle. Run as a single source file with Kafka 4.4 on the
// class path:
//   java -cp '<jars>/*' RecordsOracle.java generate <directory>   writes the golden batches beside this file
//   java -cp '<jars>/*' RecordsOracle.java read < hex lines       describes each record set, one JSON line each
//   java -cp '<jars>/*' RecordsOracle.java validate < hex lines   LogValidator's verdict on each
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.record.internal.CompressionType;
import org.apache.kafka.common.record.internal.ControlRecordType;
import org.apache.kafka.common.record.internal.EndTransactionMarker;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.MemoryRecordsBuilder;
import org.apache.kafka.common.record.internal.MutableRecordBatch;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.common.utils.internals.BufferSupplier;
import org.apache.kafka.common.utils.internals.ByteBufferOutputStream;
import org.apache.kafka.common.utils.internals.PrimitiveRef;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.storage.internals.log.AppendOrigin;
import org.apache.kafka.storage.internals.log.LogValidator;

public class RecordsOracle {
    static final long T = 1_700_000_000_000L;
    static final long NOW = T + 86_400_000L;

    public static void main(String[] args) throws Exception {
        switch (args[0]) {
            case "generate" -> generate(Path.of(args[1]));
            case "read" -> eachLine(RecordsOracle::describe);
            case "validate" -> eachLine(RecordsOracle::validate);
            default -> throw new IllegalArgumentException(args[0]);
        }
    }

    interface Question {
        String answer(ByteBuffer bytes) throws Exception;
    }

    static void eachLine(Question question) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String answer;
            try {
                answer = question.answer(ByteBuffer.wrap(HexFormat.of().parseHex(line.strip())));
            } catch (Throwable e) {
                answer = "{\"error\":\"" + e.getClass().getSimpleName() + "\",\"message\":" + text(String.valueOf(e.getMessage())) + "}";
            }
            System.out.println(answer);
        }
    }

    // ---- generate

    static byte[] bytes(String s) {
        return s == null ? null : s.getBytes(StandardCharsets.UTF_8);
    }

    static void generate(Path dir) throws Exception {
        for (byte magic = 0; magic <= 2; magic++) {
            for (CompressionType type : CompressionType.values()) {
                if (type == CompressionType.ZSTD && magic < 2)
                    continue;
                for (TimestampType stamp : new TimestampType[] {TimestampType.CREATE_TIME, TimestampType.LOG_APPEND_TIME}) {
                    if (magic == 0 && stamp == TimestampType.LOG_APPEND_TIME)
                        continue;
                    String name = "v" + magic + "-" + type.name + (stamp == TimestampType.CREATE_TIME ? "-create" : "-append");
                    save(dir, name, few(magic, type, stamp));
                }
                if (magic == 2 || magic == 1 && type != CompressionType.NONE)
                    save(dir, "v" + magic + "-" + type.name + "-large", large(magic, type));
            }
        }
        ByteBuffer buffer = ByteBuffer.allocate(4096);
        MemoryRecordsBuilder builder = MemoryRecords.builder(buffer, (byte) 2, Compression.NONE,
            TimestampType.CREATE_TIME, 1500L, T, 4711L, (short) 3, 2147483646, true, 9);
        for (int i = 0; i < 4; i++)
            builder.append(T + i, bytes("k" + i), bytes("v" + i));
        save(dir, "v2-transactional", builder.build());
        save(dir, "v2-marker-commit", MemoryRecords.withEndTransactionMarker(77L, T, 5, 4711L, (short) 3,
            new EndTransactionMarker(ControlRecordType.COMMIT, 12)));
        save(dir, "v2-marker-abort", MemoryRecords.withEndTransactionMarker(78L, T, 5, 4711L, (short) 3,
            new EndTransactionMarker(ControlRecordType.ABORT, 12)));
        ByteBufferOutputStream out = new ByteBufferOutputStream(4096);
        builder = new MemoryRecordsBuilder(out, (byte) 2, Compression.NONE, TimestampType.CREATE_TIME, 20L, -1L,
            -1L, (short) -1, -1, false, false, 2, 4096, T + 5000);
        builder.appendWithOffset(22L, T, bytes("tombstone"), null);
        builder.appendWithOffset(25L, T + 9000, bytes("kept"), bytes("v"));
        builder.overrideLastOffset(29L);
        save(dir, "v2-delete-horizon", builder.build());
    }

    static MemoryRecords few(byte magic, CompressionType type, TimestampType stamp) {
        MemoryRecordsBuilder builder = MemoryRecords.builder(ByteBuffer.allocate(4096), magic,
            Compression.of(type).build(), stamp, 1000L, T + 777, -1L, (short) -1, -1, false, 7);
        Header[] none = new Header[0];
        builder.append(T, bytes("first"), bytes("one"), none);
        builder.append(T + 70, null, bytes("no key"), none);
        builder.append(T - 100, bytes("tombstone"), null, none);
        builder.append(T + 300, bytes(""), bytes(""), none);
        builder.append(T + 300, bytes("k"), bytes("v"), magic < 2 ? none : new Header[] {
            new RecordHeader("name", bytes("value")), new RecordHeader("empty", new byte[0]),
            new RecordHeader("null", (byte[]) null), new RecordHeader("", bytes("ä"))});
        builder.append(T + 5, bytes("k"), bytes("x".repeat(200)), none);
        return builder.build();
    }

    // More than one block of any codec's framing, yet small on disk.
    static MemoryRecords large(byte magic, CompressionType type) {
        int count = type == CompressionType.NONE ? 200 : 1100;
        MemoryRecordsBuilder builder = MemoryRecords.builder(ByteBuffer.allocate(512 * 1024), magic,
            Compression.of(type).build(), TimestampType.CREATE_TIME, 0L, T, -1L, (short) -1, -1, false, 0);
        for (int i = 0; i < count; i++)
            builder.append(T + (i * 37L) % 1000, i % 10 == 9 ? null : bytes("key-" + i % 50),
                bytes(("value " + i % 7 + " ").repeat(2 + i % 20)), new Header[0]);
        return builder.build();
    }

    static void save(Path dir, String name, MemoryRecords records) throws Exception {
        ByteBuffer buffer = records.buffer().duplicate();
        byte[] content = new byte[buffer.remaining()];
        buffer.get(content);
        Files.write(dir.resolve(name + ".bin"), content);
        Files.writeString(dir.resolve(name + ".json"), describe(ByteBuffer.wrap(content)) + "\n");
    }

    // ---- read

    static String describe(ByteBuffer bytes) {
        List<String> batches = new ArrayList<>();
        for (MutableRecordBatch batch : MemoryRecords.readableRecords(bytes).batches()) {
            List<String> records = new ArrayList<>();
            // A digest of long lists keeps the golden files small.
            int index = 0;
            for (Record record : batch) {
                if (index++ < 12)
                    records.add(describe(record));
            }
            batches.add("{\"valid\":" + batch.isValid() + ",\"magic\":" + batch.magic()
                + ",\"base_offset\":" + batch.baseOffset() + ",\"last_offset\":" + batch.lastOffset()
                + ",\"size\":" + batch.sizeInBytes() + ",\"codec\":" + batch.compressionType().id
                + ",\"max_timestamp\":" + batch.maxTimestamp()
                + ",\"timestamp_type\":" + Math.max(0, batch.timestampType().id)
                + ",\"leader_epoch\":" + batch.partitionLeaderEpoch()
                + ",\"producer_id\":" + batch.producerId() + ",\"producer_epoch\":" + batch.producerEpoch()
                + ",\"base_sequence\":" + batch.baseSequence() + ",\"last_sequence\":" + batch.lastSequence()
                + ",\"transactional\":" + batch.isTransactional() + ",\"control\":" + batch.isControlBatch()
                + ",\"delete_horizon\":" + (batch.deleteHorizonMs().isPresent() ? batch.deleteHorizonMs().getAsLong() : "null")
                + ",\"count\":" + index + ",\"records\":[" + String.join(",", records) + "]}");
        }
        return "[" + String.join(",", batches) + "]";
    }

    static String describe(Record record) {
        List<String> headers = new ArrayList<>();
        for (Header header : record.headers())
            headers.add("[" + text(header.key()) + "," + hex(header.value()) + "]");
        return "[" + record.offset() + "," + record.timestamp() + "," + hex(record.key()) + "," + hex(record.value())
            + ",[" + String.join(",", headers) + "]]";
    }

    static String hex(byte[] value) {
        return value == null ? "null" : "\"" + HexFormat.of().formatHex(value) + "\"";
    }

    static String hex(ByteBuffer value) {
        if (value == null)
            return "null";
        byte[] content = new byte[value.remaining()];
        value.duplicate().get(content);
        return hex(content);
    }

    static String text(String value) {
        StringBuilder out = new StringBuilder("\"");
        for (char c : value.toCharArray()) {
            if (c == '"' || c == '\\' || c < 0x20 || c > 0x7e)
                out.append(String.format("\\u%04x", (int) c));
            else
                out.append(c);
        }
        return out.append('"').toString();
    }

    // ---- validate

    static final class FixedTime implements Time {
        public long milliseconds() {
            return NOW;
        }

        public long nanoseconds() {
            return 0;
        }

        public void sleep(long ms) {
        }

        public void waitObject(Object o, java.util.function.Supplier<Boolean> condition, long deadline) {
        }

        public org.apache.kafka.common.utils.Timer timer(long ms) {
            return Time.SYSTEM.timer(ms);
        }
    }

    static final class NoMetrics implements LogValidator.MetricsRecorder {
        public void recordInvalidMagic() {
        }

        public void recordInvalidOffset() {
        }

        public void recordInvalidSequence() {
        }

        public void recordInvalidChecksums() {
        }

        public void recordNoKeyCompactedTopic() {
        }
    }

    // A client's records for a CreateTime topic, first offset 100, leader epoch 4.
    static String validate(ByteBuffer bytes) {
        MemoryRecords records = MemoryRecords.readableRecords(bytes);
        CompressionType source = records.batches().iterator().next().compressionType();
        LogValidator validator = new LogValidator(records, new TopicPartition("t", 0), new FixedTime(), source,
            Compression.of(source).build(), false, (byte) 2, TimestampType.CREATE_TIME, Long.MAX_VALUE,
            Long.MAX_VALUE, 4, AppendOrigin.CLIENT);
        LogValidator.ValidationResult result = validator.validateMessagesAndAssignOffsets(
            PrimitiveRef.ofLong(100), new NoMetrics(), BufferSupplier.NO_CACHING);
        return "{\"max_timestamp\":" + result.maxTimestampMs()
            + ",\"records\":" + hex(result.validatedRecords().buffer()) + "}";
    }
}
