import java.io.FileReader;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.common.utils.internals.AppInfoParser;

/**
 * The newest admin client, producer and consumer in turn: they make a topic, fill it with every codec, read it in
 * a group, abort one transaction and commit another, and delete the group and the topic. Arguments: bootstrap
 * servers, topic, group, and a file of further settings or nothing.
 */
public class ClientTour {
    public static void main(String[] args) throws Exception {
        Map<String, Object> servers = new HashMap<>(Map.of("bootstrap.servers", args[0]));
        if (args.length > 3)
            try (var file = new FileReader(args[3])) {
                Properties settings = new Properties();
                settings.load(file);
                settings.forEach((name, value) -> servers.put((String) name, value));
            }
        String topic = args[1], group = args[2];
        System.out.println("clients " + AppInfoParser.getVersion());
        try (Admin admin = Admin.create(servers)) {
            admin.createTopics(List.of(new NewTopic(topic, 1, (short) 1))).all().get();
            for (String codec : List.of("none", "gzip", "snappy", "lz4", "zstd")) {
                try (var producer = new KafkaProducer<>(
                        with(servers, "compression.type", codec), new StringSerializer(), new StringSerializer())) {
                    for (int i = 0; i < 20; i++)
                        producer.send(new ProducerRecord<>(topic, codec, codec + i)).get();
                }
            }
            TopicPartition partition = new TopicPartition(topic, 0);
            System.out.println("end " + admin.listOffsets(Map.of(partition, OffsetSpec.latest()))
                .partitionResult(partition).get().offset());
            Map<String, Object> reading = with(with(servers, "group.id", group), "auto.offset.reset", "earliest");
            reading = with(reading, "isolation.level", "read_committed");
            try (var consumer = new KafkaConsumer<>(reading, new StringDeserializer(), new StringDeserializer())) {
                consumer.subscribe(List.of(topic));
                int read = 0;
                while (read < 100) {
                    for (var record : consumer.poll(Duration.ofSeconds(10)))
                        if (!record.value().equals(record.key() + read++ % 20))
                            throw new AssertionError(record);
                }
                consumer.commitSync();
                System.out.println("committed " + consumer.committed(java.util.Set.of(partition)).get(partition).offset());
                try (var producer = new KafkaProducer<>(
                        with(servers, "transactional.id", group), new StringSerializer(), new StringSerializer())) {
                    producer.initTransactions();
                    producer.beginTransaction();
                    producer.send(new ProducerRecord<>(topic, "aborted", "")).get();
                    producer.abortTransaction();
                    producer.beginTransaction();
                    long offset = producer.send(new ProducerRecord<>(topic, "committed", "")).get().offset();
                    producer.sendOffsetsToTransaction(
                        Map.of(partition, new OffsetAndMetadata(offset + 1)), consumer.groupMetadata());
                    producer.commitTransaction();
                }
                var records = consumer.poll(Duration.ofSeconds(10));
                while (records.isEmpty())
                    records = consumer.poll(Duration.ofSeconds(10));
                System.out.println("in transactions " + records.count() + " " + records.iterator().next().key()
                    + " " + consumer.committed(java.util.Set.of(partition)).get(partition).offset());
            }
            admin.deleteConsumerGroups(List.of(group)).all().get();
            System.out.println("groups " + admin.listGroups().all().get().stream()
                .filter(one -> one.groupId().equals(group)).count());
            admin.deleteTopics(List.of(topic)).all().get();
        }
    }

    static Map<String, Object> with(Map<String, Object> settings, String name, Object value) {
        var more = new java.util.HashMap<>(settings);
        more.put(name, value);
        return more;
    }
}
