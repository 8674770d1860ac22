package org.apache.kafka.storage.internals.log;

import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.File;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.management.ManagementFactory;
import java.net.URL;
import java.net.URLClassLoader;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.TreeMap;
import java.util.concurrent.Delayed;
import java.util.concurrent.FutureTask;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.util.Scheduler;
import org.apache.kafka.storage.internals.utils.Throttler;
import org.apache.kafka.storage.log.metrics.BrokerTopicStats;

/**
 * Apache Kafka's own log cleaner as an oracle: each line of input is a question in JSON, each line of
 * output its answer. One JVM answers many. In Kafka's package for its package-private members.
 *
 *   op "clean"  opens the partition in `directory` with a clock that stands at `now`, cleans it from
 *               `firstDirty` up to `firstUncleanable`, closes it. Answers the end offset and statistics.
 *   op "plan"   what LogCleanerManager would take of it, given `checkpoint` (absent: none).
 *   op "open"   opens and closes it; answers its offsets and producers.
 *   op "dump"   runs DumpLogSegments with `arguments`; answers what it printed. The tool has a class
 *               loader of its own, for the jars of the program's first argument: it is not in every release.
 */
public class CleanerOracle {
    static final ObjectMapper JSON = new ObjectMapper();

    static ClassLoader tools;

    public static void main(String[] args) throws Exception {
        List<URL> jars = new ArrayList<>();
        for (File jar : new File(args[0]).listFiles((directory, name) -> name.endsWith(".jar"))) jars.add(jar.toURI().toURL());
        tools = new URLClassLoader(jars.toArray(new URL[0]), ClassLoader.getPlatformClassLoader());
        PrintStream answers = System.out;
        System.setOut(System.err);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            ObjectNode answer = JSON.createObjectNode();
            try {
                answer(JSON.readTree(line), answer);
            } catch (Throwable error) {
                // What Kafka refuses is an answer, too; AssertionError included.
                answer.removeAll();
                answer.put("error", error.toString());
                answer.put("kind", error.getClass().getSimpleName());
                if (!(error instanceof LogCleaningAbortedException)) error.printStackTrace();
            }
            answers.println(answer);
            answers.flush();
        }
    }

    static void answer(JsonNode question, ObjectNode answer) throws Exception {
        switch (question.get("op").asText()) {
            case "clean" -> clean(question, answer);
            case "plan" -> plan(question, answer);
            case "open" -> open(question, answer);
            case "dump" -> dump(question, answer);
            default -> throw new IllegalArgumentException(question.toString());
        }
    }

    static UnifiedLog log(JsonNode question) throws Exception {
        Map<String, String> settings = new HashMap<>();
        question.get("config").properties().forEach(entry -> settings.put(entry.getKey(), entry.getValue().asText()));
        UnifiedLog log = UnifiedLog.create(
            new File(question.get("directory").asText()),
            new LogConfig(settings),
            question.path("logStart").asLong(0),
            question.path("recoveryPoint").asLong(0),
            new AtOnce(),
            new BrokerTopicStats(false),
            new StandingTime(question.get("now").asLong()),
            900_000,
            new ProducerStateManagerConfig(86_400_000, false),
            600_000,
            new LogDirFailureChannel(1),
            question.path("cleanShutdown").asBoolean(true),
            Optional.empty());
        log.updateHighWatermark(log.logEndOffset());
        return log;
    }

    static void clean(JsonNode question, ObjectNode answer) throws Exception {
        try (UnifiedLog log = log(question)) {
            long before = log.logEndOffset();
            Cleaner cleaner = new Cleaner(
                0,
                new SkimpyOffsetMap(question.get("mapBytes").asInt()),
                question.get("ioBuffer").asInt(),
                question.path("maxIoBuffer").asInt(1_048_588),
                question.path("loadFactor").asDouble(0.9),
                new Throttler(Double.MAX_VALUE, 300, "oracle", "entries", Time.SYSTEM),
                new StandingTime(question.get("now").asLong()),
                partition -> { });
            LogToClean toClean = new LogToClean(
                log, question.get("firstDirty").asLong(), question.get("firstUncleanable").asLong(), false);
            answer.put("firstUncleanable", toClean.firstUncleanableOffset());
            answer.put("cleanBytes", toClean.cleanBytes());
            answer.put("cleanableBytes", toClean.cleanableBytes());
            var threads = ManagementFactory.getThreadMXBean();
            long wall = System.nanoTime();
            long cpu = threads.getCurrentThreadCpuTime();
            Map.Entry<Long, CleanerStats> result = cleaner.doClean(toClean, question.get("now").asLong());
            answer.put("cpuSeconds", (threads.getCurrentThreadCpuTime() - cpu) / 1e9);
            answer.put("seconds", (System.nanoTime() - wall) / 1e9);
            CleanerStats stats = result.getValue();
            answer.put("endOffset", result.getKey());
            answer.put("bytesRead", stats.bytesRead());
            answer.put("bytesWritten", stats.bytesWritten());
            answer.put("mapBytesRead", stats.mapBytesRead);
            answer.put("messagesRead", stats.messagesRead());
            answer.put("messagesWritten", stats.messagesWritten());
            answer.put("mapMessagesRead", stats.mapMessagesRead());
            answer.put("invalidMessagesRead", stats.invalidMessagesRead());
            answer.put("mapSize", cleaner.offsetMap().size());
            answer.put("mapSlots", cleaner.offsetMap().slots());
            if (before != log.logEndOffset())
                throw new AssertionError("log end offset " + before + " became " + log.logEndOffset());
            facts(log, answer);
        }
    }

    static void plan(JsonNode question, ObjectNode answer) throws Exception {
        try (UnifiedLog log = log(question)) {
            Optional<Long> checkpoint = question.hasNonNull("checkpoint")
                ? Optional.of(question.get("checkpoint").asLong()) : Optional.empty();
            LogCleanerManager.OffsetsToClean offsets =
                LogCleanerManager.cleanableOffsets(log, checkpoint, question.get("now").asLong());
            LogToClean toClean = new LogToClean(
                log, offsets.firstDirtyOffset(), offsets.firstUncleanableDirtyOffset(), false);
            answer.put("firstDirty", offsets.firstDirtyOffset());
            answer.put("firstUncleanableDirty", offsets.firstUncleanableDirtyOffset());
            answer.put("forceUpdateCheckpoint", offsets.forceUpdateCheckpoint());
            answer.put("firstUncleanable", toClean.firstUncleanableOffset());
            answer.put("cleanBytes", toClean.cleanBytes());
            answer.put("cleanableBytes", toClean.cleanableBytes());
            answer.put("totalBytes", toClean.totalBytes());
            var delay = LogCleanerManager.class.getDeclaredMethod(
                "maxCompactionDelay", UnifiedLog.class, long.class, long.class);
            delay.setAccessible(true);
            answer.put("delayMs",
                (long) delay.invoke(null, log, offsets.firstDirtyOffset(), question.get("now").asLong()));
            facts(log, answer);
        }
    }

    static void open(JsonNode question, ObjectNode answer) throws Exception {
        try (UnifiedLog log = log(question)) {
            facts(log, answer);
        }
    }

    /** The last thing that is done to a log: closing it leaves the indexes of the active segment as they are. */
    static void facts(UnifiedLog log, ObjectNode answer) throws Exception {
        log.prepareActiveSegmentForClose();
        answer.put("logStartOffset", log.logStartOffset());
        answer.put("logEndOffset", log.logEndOffset());
        answer.put("lastStableOffset", log.lastStableOffset());
        ObjectNode producers = answer.putObject("activeProducers");
        new TreeMap<>(log.lastRecordsOfActiveProducers()).forEach((id, last) -> {
            ObjectNode producer = producers.putObject(String.valueOf(id));
            producer.put("epoch", last.producerEpoch());
            OptionalLong offset = last.lastDataOffset();
            if (offset.isPresent()) producer.put("lastDataOffset", offset.getAsLong());
        });
        ObjectNode sequences = answer.putObject("lastSequences");
        new TreeMap<>(log.activeProducersWithLastSequence())
            .forEach((id, sequence) -> sequences.put(String.valueOf(id), sequence));
        log.logSegments().forEach(segment -> answer.withArray("segments").add(segment.baseOffset()));
    }

    static void dump(JsonNode question, ObjectNode answer) throws Exception {
        List<String> arguments = new ArrayList<>();
        question.get("arguments").forEach(argument -> arguments.add(argument.asText()));
        PrintStream before = System.out, errors = System.err;
        ByteArrayOutputStream printed = new ByteArrayOutputStream();
        System.setOut(new PrintStream(printed, true));
        System.setErr(new PrintStream(printed, true));
        ClassLoader own = Thread.currentThread().getContextClassLoader();
        Thread.currentThread().setContextClassLoader(tools);
        try {
            tools.loadClass("org.apache.kafka.tools.DumpLogSegments").getMethod("main", String[].class)
                .invoke(null, (Object) arguments.toArray(new String[0]));
        } finally {
            Thread.currentThread().setContextClassLoader(own);
            System.setOut(before);
            System.setErr(errors);
        }
        answer.put("output", printed.toString());
    }

    /** The wall clock stands still, so that no answer depends on when it was asked for. */
    record StandingTime(long now) implements Time {
        public long milliseconds() { return now; }
        public long nanoseconds() { return System.nanoTime(); }
        public void sleep(long ms) { throw new UnsupportedOperationException(); }
        public void waitObject(Object o, Supplier<Boolean> condition, long deadline) {
            throw new UnsupportedOperationException();
        }
    }

    /** What is to happen once happens now; what is periodical never. */
    static class AtOnce implements Scheduler {
        public void startup() { }
        public void shutdown() { }
        public void resizeThreadPool(int size) { }
        public ScheduledFuture<?> schedule(String name, Runnable task, long delayMs, long periodMs) {
            if (periodMs < 0) task.run();
            return new Done();
        }
    }

    static class Done extends FutureTask<Void> implements ScheduledFuture<Void> {
        Done() { super(() -> null); }
        public long getDelay(TimeUnit unit) { return 0; }
        public int compareTo(Delayed other) { return 0; }
    }
}
