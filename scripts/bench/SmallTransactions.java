import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.SynchronousQueue;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;

/**
 * Transactions of one record, one after another: prints the milliseconds of each. Arguments:
 * bootstrap servers, topic, number to measure, number before that to warm up, and what to measure:
 * "commit" begin, send, commit; "copy" the same with the offset of a record that was consumed from
 * <topic>-in, which is filled; "visible" from the call of commit to the record at a read_committed
 * consumer that waits for it.
 */
public class SmallTransactions {
    static final byte[] VALUE = new byte[100];

    public static void main(String[] args) throws Exception {
        String topic = args[1];
        int count = Integer.parseInt(args[2]), warm = Integer.parseInt(args[3]);
        Properties settings = new Properties();
        settings.put("bootstrap.servers", args[0]);
        settings.put("transactional.id", topic + "-java-" + args[4]);
        for (String side : List.of("key", "value")) {
            settings.put(side + ".serializer", "org.apache.kafka.common.serialization.ByteArraySerializer");
            settings.put(side + ".deserializer", "org.apache.kafka.common.serialization.ByteArrayDeserializer");
        }
        settings.put("isolation.level", "read_committed");
        settings.put("auto.offset.reset", "earliest");
        settings.put("enable.auto.commit", "false");
        settings.put("group.id", topic + "-java-" + args[4]);
        settings.put("max.poll.records", "1");
        KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(settings);
        producer.initTransactions();
        boolean copy = args[4].equals("copy"), visible = args[4].equals("visible");
        KafkaConsumer<byte[], byte[]> consumer = null;
        SynchronousQueue<Long> arrivals = new SynchronousQueue<>();
        if (copy) {
            consumer = new KafkaConsumer<>(settings);
            consumer.subscribe(List.of(topic + "-in"));
        }
        if (visible) startReader(settings, topic, arrivals);
        for (int turn = 0; turn < warm + count; turn++) {
            ConsumerRecord<byte[], byte[]> input = copy ? next(consumer) : null;
            long began = System.nanoTime();
            producer.beginTransaction();
            producer.send(new ProducerRecord<>(topic, 0, null, VALUE));
            if (copy) {
                var place = new TopicPartition(input.topic(), input.partition());
                var offset = new OffsetAndMetadata(input.offset() + 1);
                producer.sendOffsetsToTransaction(Map.of(place, offset), consumer.groupMetadata());
            }
            if (visible) {
                producer.flush();
                began = System.nanoTime();
            }
            producer.commitTransaction();
            long ended = visible ? arrivals.take() : System.nanoTime();
            if (turn >= warm) System.out.println((ended - began) / 1e6);
        }
        producer.close();
        if (copy) consumer.close();
    }

    static ConsumerRecord<byte[], byte[]> next(KafkaConsumer<byte[], byte[]> consumer) {
        for (int attempt = 0; attempt < 30; attempt++) {
            var records = consumer.poll(Duration.ofSeconds(1));
            if (!records.isEmpty()) return records.iterator().next();
        }
        throw new IllegalStateException("nothing to read");
    }

    static void startReader(Properties settings, String topic, SynchronousQueue<Long> arrivals)
            throws InterruptedException {
        KafkaConsumer<byte[], byte[]> reader = new KafkaConsumer<>(settings);
        TopicPartition place = new TopicPartition(topic, 0);
        reader.assign(List.of(place));
        reader.seekToEnd(List.of(place));
        reader.position(place);
        Thread thread = new Thread(() -> {
            while (true) {
                for (ConsumerRecord<byte[], byte[]> record : reader.poll(Duration.ofSeconds(1))) {
                    try {
                        arrivals.put(System.nanoTime());
                    } catch (InterruptedException e) {
                        return;
                    }
                }
            }
        });
        thread.setDaemon(true);
        thread.start();
    }
}
