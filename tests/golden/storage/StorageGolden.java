// Writes the golden files of this directory with Apache Kafka's own storage classes.
//
//   javac -d <classes> -cp "<kafka 4.4.0 jars>/*" StorageGolden.java
//   java -cp "<classes>:<kafka 4.4.0 jars>/*" org.apache.kafka.storage.internals.log.StorageGolden <this directory>
//
// Scripts of random operations come with what Kafka answered, one operation per line
// ("operation -> answer"); tests/unit/storage replays them. In Kafka's package for its package-private
// members.
package org.apache.kafka.storage.internals.log;

import java.io.File;
import java.io.PrintWriter;
import java.nio.file.Files;
import java.util.LinkedHashMap;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.Properties;
import java.util.Random;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.record.internal.ControlRecordType;
import org.apache.kafka.common.record.internal.EndTransactionMarker;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.common.record.internal.SimpleRecord;
import org.apache.kafka.common.message.AbortedTxn;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.metadata.properties.MetaProperties;
import org.apache.kafka.metadata.properties.MetaPropertiesVersion;
import org.apache.kafka.metadata.properties.PropertiesUtils;
import org.apache.kafka.server.util.KafkaScheduler;
import org.apache.kafka.storage.internals.checkpoint.CleanShutdownFileHandler;
import org.apache.kafka.storage.internals.checkpoint.LeaderEpochCheckpointFile;
import org.apache.kafka.storage.internals.checkpoint.OffsetCheckpointFile;
import org.apache.kafka.storage.internals.checkpoint.PartitionMetadataFile;
import org.apache.kafka.storage.internals.epoch.LeaderEpochFileCache;

public class StorageGolden {
    static final TopicPartition TP = new TopicPartition("topic", 0);
    static File out;

    public static void main(String[] args) throws Exception {
        out = new File(args[0]);
        indexes();
        transactionIndex();
        producers();
        epochs();
        directory();
    }

    static PrintWriter script(String name) throws Exception {
        return new PrintWriter(new File(out, name), "UTF-8");
    }

    static File fresh(String name) throws Exception {
        File file = new File(out, name);
        Files.deleteIfExists(file.toPath());
        return file;
    }

    static void indexes() throws Exception {
        Random random = new Random(1);
        long base = 1000;
        OffsetIndex offsets = new OffsetIndex(fresh("00000000000000001000.index"), base, 30000);
        TimeIndex times = new TimeIndex(fresh("00000000000000001000.timeindex"), base, 30000);
        try (PrintWriter lines = script("index.script")) {
            long offset = base;
            int position = 0;
            long timestamp = 1700000000000L;
            for (int i = 0; i < 3000; i++) {
                offset += 1 + random.nextInt(50);
                position += 4097 + random.nextInt(3000);
                timestamp += random.nextInt(5) - 1;
                offsets.append(offset, position);
                lines.printf("append %d %d -> %d%n", offset, position, offsets.entries());
                if (!times.isFull() && timestamp >= times.lastEntry().timestamp()) {
                    times.maybeAppend(timestamp, offset);
                    lines.printf("time %d %d -> %d%n", timestamp, offset, times.entries());
                }
            }
            for (int i = 0; i < 400; i++) {
                long target = base - 5 + random.nextInt((int) (offset - base + 30));
                OffsetPosition found = offsets.lookup(target);
                lines.printf("lookup %d -> %d %d%n", target, found.offset(), found.position());
                long at = 1700000000000L - 5 + random.nextInt((int) (timestamp - 1700000000000L + 20));
                TimestampOffset when = times.lookup(at);
                lines.printf("lookup_time %d -> %d %d%n", at, when.timestamp(), when.offset());
                int size = 1 + random.nextInt(100000);
                Optional<OffsetPosition> upper = offsets.fetchUpperBoundOffset(found, size);
                lines.printf("upper %d %d -> %s%n", found.position(), size,
                    upper.map(o -> o.offset() + " " + o.position()).orElse("none"));
            }
            for (int i = 0; i < 20; i++) {
                offset -= random.nextInt(600);
                offsets.truncateTo(offset);
                times.truncateTo(offset);
                lines.printf("truncate %d -> %d %d %d%n", offset, offsets.entries(), times.entries(),
                    offsets.lastOffset());
            }
        }
        offsets.trimToValidSize(); // Since 4.4 close leaves the size as it is.
        times.trimToValidSize();
        offsets.close();
        times.close();
    }

    static void transactionIndex() throws Exception {
        Random random = new Random(2);
        TransactionIndex index = new TransactionIndex(50, fresh("00000000000000000050.txnindex"));
        try (PrintWriter lines = script("txnindex.script")) {
            long last = 50;
            for (int i = 0; i < 40; i++) {
                last += 1 + random.nextInt(20);
                long first = Math.max(0, last - 1 - random.nextInt(30));
                long stable = Math.max(first, last + 1 - random.nextInt(25));
                long pid = random.nextInt(5);
                index.append(new AbortedTxn().setProducerId(pid).setFirstOffset(first).setLastOffset(last)
                    .setLastStableOffset(stable));
                lines.printf("append %d %d %d %d -> %n", pid, first, last, stable);
            }
            for (int i = 0; i < 400; i++) {
                long fetch = 30 + random.nextInt((int) last - 20);
                long upper = fetch + 1 + random.nextInt(80);
                TxnIndexSearchResult result = index.collectAbortedTxns(fetch, upper);
                StringBuilder text = new StringBuilder();
                for (AbortedTxn txn : result.abortedTransactions())
                    text.append(' ').append(txn.lastOffset());
                lines.printf("collect %d %d -> %s%s%n", fetch, upper, result.isComplete(), text);
            }
            index.truncateTo(last - 100);
            lines.printf("truncate %d -> %d%n", last - 100, index.allAbortedTxns().size());
        }
        index.close();
    }

    static void producers() throws Exception {
        Random random = new Random(3);
        File dir = Files.createTempDirectory("producers").toFile();
        ProducerStateManager manager = new ProducerStateManager(
            TP, dir, 900000, new ProducerStateManagerConfig(20000, false), Time.SYSTEM);
        long[] pids = {0, 1, 17, 1000, 2000, 16, 5000000000L};
        short[] epochs = new short[pids.length];
        int[] sequences = new int[pids.length];
        boolean[] open = new boolean[pids.length];
        int[][] recent = new int[pids.length][2];
        int coordinator = 3;
        long end = 0;
        long now = 1700000000000L;
        try (PrintWriter lines = script("producers.script")) {
            for (int i = 0; i < 3000; i++) {
                now += random.nextInt(100);
                int who = random.nextInt(pids.length);
                long pid = pids[who];
                int dice = random.nextInt(100);
                if (dice < 75) {
                    // Mostly what a producer sends next; sometimes again, too far, of another epoch.
                    short epoch = epochs[who];
                    int sequence = sequences[who];
                    int trick = random.nextInt(20);
                    int count = 1 + random.nextInt(3);
                    if (trick == 0) sequence = Math.max(0, sequence - 1 - random.nextInt(9));
                    if (trick == 1) sequence += 1 + random.nextInt(5);
                    if (trick == 2) epoch = (short) Math.max(0, epoch - 1);
                    if (trick == 3) { epoch++; sequence = random.nextInt(2); }
                    if (trick == 4) sequence = Integer.MAX_VALUE - random.nextInt(3);
                    if (trick == 5) { sequence = recent[who][0]; count = recent[who][1] + 1; }
                    if (trick >= 6 && trick <= 8) { sequence = recent[who][0]; count = Math.max(1, recent[who][1]); }
                    boolean txn = (open[who] || random.nextInt(3) == 0) ^ (random.nextInt(25) == 0);
                    AppendOrigin origin = random.nextInt(8) == 0 ? AppendOrigin.COORDINATOR : AppendOrigin.CLIENT;
                    SimpleRecord[] records = new SimpleRecord[count];
                    for (int r = 0; r < count; r++) records[r] = new SimpleRecord(now, "v".getBytes());
                    MemoryRecords data = txn
                        ? MemoryRecords.withTransactionalRecords(end, Compression.NONE, pid, epoch, sequence, 0, records)
                        : MemoryRecords.withIdempotentRecords(end, Compression.NONE, pid, epoch, sequence, 0, records);
                    RecordBatch batch = data.batches().iterator().next();
                    String answer;
                    Optional<ProducerStateEntry> known = manager.lastEntry(pid);
                    Optional<BatchMetadata> duplicate = origin == AppendOrigin.CLIENT && known.isPresent()
                        ? known.get().findDuplicateBatch(batch) : Optional.empty();
                    if (duplicate.isPresent()) {
                        answer = "duplicate " + duplicate.get().firstOffset() + " " + duplicate.get().lastOffset();
                    } else {
                        try {
                            ProducerAppendInfo info = manager.prepareUpdate(pid, origin);
                            info.append(batch, Optional.empty());
                            manager.update(info);
                            end += count;
                            manager.updateMapEndOffset(end);
                            epochs[who] = epoch;
                            sequences[who] = batch.lastSequence() == Integer.MAX_VALUE ? 0 : batch.lastSequence() + 1;
                            recent[who] = new int[] {sequence, count};
                            open[who] = open[who] || txn;
                            answer = "ok";
                        } catch (Exception e) {
                            answer = e.getClass().getSimpleName();
                        }
                    }
                    lines.printf("batch %d %d %d %d %s %s %d -> %s%s%n", pid, epoch, sequence, count,
                        txn ? "txn" : "plain", origin, now, answer, state(manager));
                } else if (dice < 90) {
                    int trick = random.nextInt(12);
                    short epoch = epochs[who];
                    int by = coordinator;
                    if (trick == 0) by--;
                    if (trick == 1) coordinator++;
                    if (trick == 2) epoch++;
                    if (trick == 3) epoch = (short) Math.max(0, epoch - 1);
                    boolean abort = random.nextBoolean();
                    short version = (short) (random.nextInt(4) == 0 ? 2 : 0);
                    MemoryRecords data = MemoryRecords.withEndTransactionMarker(end, now, 0, pid, epoch,
                        new EndTransactionMarker(abort ? ControlRecordType.ABORT : ControlRecordType.COMMIT, by));
                    RecordBatch batch = data.batches().iterator().next();
                    String answer;
                    try {
                        ProducerAppendInfo info = manager.prepareUpdate(pid, AppendOrigin.COORDINATOR);
                        Optional<CompletedTxn> completed = info.append(batch, Optional.empty(), version);
                        manager.update(info);
                        end++;
                        manager.updateMapEndOffset(end);
                        if (epochs[who] != epoch) sequences[who] = 0;
                        epochs[who] = epoch;
                        open[who] = false;
                        answer = "none";
                        if (completed.isPresent()) {
                            CompletedTxn txn = completed.get();
                            answer = "completed " + txn.firstOffset() + " " + txn.lastOffset() + " "
                                + txn.isAborted() + " " + manager.lastStableOffset(txn);
                            manager.completeTxn(txn);
                        }
                    } catch (Exception e) {
                        answer = e.getClass().getSimpleName();
                    }
                    lines.printf("marker %d %d %d %s %d %d -> %s%s%n", pid, epoch, by, abort ? "abort" : "commit",
                        version, now, answer, state(manager));
                } else if (dice < 97) {
                    long hw = Math.max(0, end - random.nextInt(20));
                    manager.onHighWatermarkUpdated(hw);
                    lines.printf("high_watermark %d -> %s%n", hw, state(manager));
                } else if (dice < 98) {
                    long when = now + random.nextInt(2) * 19500;
                    manager.removeExpiredProducers(when);
                    lines.printf("expire %d -> %s%n", when, state(manager));
                } else {
                    Optional<File> file = manager.takeSnapshot(false);
                    lines.printf("snapshot -> %s%s%n", hex(file), state(manager));
                }
            }
            manager.updateMapEndOffset(end + 1);
            Optional<File> file = manager.takeSnapshot(false);
            Files.copy(file.get().toPath(), fresh("producers.snapshot").toPath());
            lines.printf("final %d -> %s%n", end + 1, hex(file));
            manager.truncateAndReload(0, end, now);
            lines.printf("truncate %d %d -> %d %d%s%n", end, now, manager.mapEndOffset(),
                manager.latestSnapshotOffset().orElse(-1), state(manager));
        }
    }

    static String hex(Optional<File> file) throws Exception {
        if (file.isEmpty()) return "none";
        java.security.MessageDigest md5 = java.security.MessageDigest.getInstance("MD5");
        return String.format("%032x", new java.math.BigInteger(1, md5.digest(Files.readAllBytes(file.get().toPath()))));
    }

    static String state(ProducerStateManager manager) {
        long unstable = manager.firstUnstableOffset().map(o -> o.messageOffset).orElse(-1L);
        OptionalLong undecided = manager.firstUndecidedOffset();
        return " | " + unstable + " " + undecided.orElse(-1) + " " + manager.producerIdCount();
    }

    static void epochs() throws Exception {
        Random random = new Random(4);
        File file = fresh("leader-epoch-checkpoint");
        KafkaScheduler scheduler = new KafkaScheduler(1);
        LeaderEpochFileCache cache = new LeaderEpochFileCache(
            TP, new LeaderEpochCheckpointFile(file, new LogDirFailureChannel(1)), scheduler);
        scheduler.startup();
        int epoch = 0;
        long end = 0;
        try (PrintWriter lines = script("epochs.script")) {
            for (int i = 0; i < 600; i++) {
                int dice = random.nextInt(20);
                if (dice < 8) {
                    epoch += random.nextInt(4) - (random.nextInt(6) == 0 ? 3 : 0);
                    end += random.nextInt(30) - (random.nextInt(6) == 0 ? 25 : 0);
                    epoch = Math.max(0, epoch);
                    end = Math.max(0, end);
                    cache.assign(epoch, end);
                    lines.printf("assign %d %d -> %s%n", epoch, end, all(cache));
                } else if (dice == 8) {
                    long at = Math.max(0, end - random.nextInt(40));
                    cache.truncateFromEndAsyncFlush(at);
                    lines.printf("from_end %d -> %s%n", at, all(cache));
                } else if (dice == 9) {
                    long at = Math.max(0, end - random.nextInt(400));
                    cache.truncateFromStartAsyncFlush(at);
                    lines.printf("from_start %d -> %s%n", at, all(cache));
                } else if (dice < 15) {
                    int asked = random.nextInt(epoch + 4) - 1;
                    var found = cache.endOffsetFor(asked, end + 100);
                    lines.printf("end_offset_for %d %d -> %d %d%n", asked, end + 100, found.getKey(), found.getValue());
                } else {
                    long asked = random.nextInt((int) end + 10);
                    lines.printf("epoch_for_offset %d -> %d%n", asked, cache.epochForOffset(asked).orElse(-1));
                }
            }
            cache.assign(epoch + 1, end + 500);
            lines.printf("assign %d %d -> %s%n", epoch + 1, end + 500, all(cache));
        }
        scheduler.shutdown();
    }

    static String all(LeaderEpochFileCache cache) {
        StringBuilder text = new StringBuilder();
        for (EpochEntry entry : cache.epochEntries())
            text.append(entry.epoch()).append(':').append(entry.startOffset()).append(' ');
        return text.toString().trim();
    }

    static void directory() throws Exception {
        LinkedHashMap<TopicPartition, Long> offsets = new LinkedHashMap<>();
        offsets.put(new TopicPartition("a.b-c", 0), 0L);
        offsets.put(new TopicPartition("topic", 17), 9007199254740993L);
        new OffsetCheckpointFile(fresh("recovery-point-offset-checkpoint"), new LogDirFailureChannel(1)).write(offsets);

        PartitionMetadataFile metadata = new PartitionMetadataFile(fresh("partition.metadata"), new LogDirFailureChannel(1));
        metadata.record(Uuid.fromString("gSVbeKkLQpiGvDWDZ7tFzA"));
        metadata.maybeFlush();

        new CleanShutdownFileHandler(out.getPath()).write(42);

        Properties v1 = new MetaProperties.Builder().setVersion(MetaPropertiesVersion.V1).setClusterId("AAAAAAAAAAAAAAAAAAAAAA")
            .setNodeId(7).setDirectoryId(Uuid.fromString("gSVbeKkLQpiGvDWDZ7tFzA")).build().toProperties();
        PropertiesUtils.writePropertiesFile(v1, new File(out, "meta.v1.properties").getPath(), true);
        Properties v0 = new MetaProperties.Builder().setVersion(MetaPropertiesVersion.V0).setClusterId("odd=clus:ter #1")
            .setNodeId(3).build().toProperties();
        PropertiesUtils.writePropertiesFile(v0, new File(out, "meta.v0.properties").getPath(), true);
    }
}
