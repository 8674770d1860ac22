import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.ProducerFencedException;
import org.apache.kafka.common.errors.InvalidProducerEpochException;

/**
 * Copies a topic in transactions of five records, every third of them aborted and done again, then
 * checks that a zombie is fenced. Arguments: bootstrap servers, from, to, group, number of records.
 */
public class TransactionalCopy {
    public static void main(String[] args) throws Exception {
        String servers = args[0], from = args[1], to = args[2], group = args[3];
        int wanted = Integer.parseInt(args[4]);
        Properties common = new Properties();
        common.put("bootstrap.servers", servers);
        common.put("key.serializer", "org.apache.kafka.common.serialization.StringSerializer");
        common.put("value.serializer", "org.apache.kafka.common.serialization.StringSerializer");
        common.put("key.deserializer", "org.apache.kafka.common.serialization.StringDeserializer");
        common.put("value.deserializer", "org.apache.kafka.common.serialization.StringDeserializer");
        Properties reading = new Properties();
        reading.putAll(common);
        reading.put("group.id", group);
        reading.put("enable.auto.commit", "false");
        reading.put("auto.offset.reset", "earliest");
        reading.put("isolation.level", "read_committed");
        reading.put("max.poll.records", "5");
        Properties writing = new Properties();
        writing.putAll(common);
        writing.put("transactional.id", group + "-id");
        KafkaProducer<String, String> producer = new KafkaProducer<>(writing);
        producer.initTransactions();
        try (KafkaConsumer<String, String> consumer = new KafkaConsumer<>(reading)) {
            consumer.subscribe(List.of(from));
            int copied = 0, turn = 0;
            while (copied < wanted) {
                var records = consumer.poll(Duration.ofSeconds(30));
                if (records.isEmpty()) throw new IllegalStateException("no records after " + copied);
                boolean abort = turn++ % 3 == 2;
                Map<TopicPartition, OffsetAndMetadata> next = new HashMap<>();
                Map<TopicPartition, Long> first = new HashMap<>();
                producer.beginTransaction();
                for (ConsumerRecord<String, String> record : records) {
                    TopicPartition place = new TopicPartition(record.topic(), record.partition());
                    first.putIfAbsent(place, record.offset());
                    next.put(place, new OffsetAndMetadata(record.offset() + 1));
                    producer.send(new ProducerRecord<>(to, record.partition(), null, record.value()));
                }
                producer.flush();
                producer.sendOffsetsToTransaction(next, consumer.groupMetadata());
                if (abort) {
                    producer.abortTransaction();
                    first.forEach(consumer::seek);
                } else {
                    producer.commitTransaction();
                    copied += records.count();
                }
            }
            System.out.println("copied " + copied + " in " + turn + " transactions");
        }
        producer.beginTransaction();
        producer.send(new ProducerRecord<>(to, 0, null, "zombie")).get();
        KafkaProducer<String, String> heir = new KafkaProducer<>(writing);
        heir.initTransactions();
        try {
            producer.commitTransaction();
            System.out.println("zombie committed");
        } catch (ProducerFencedException | InvalidProducerEpochException e) {
            System.out.println("zombie fenced");
        }
        producer.close(Duration.ZERO);
        heir.beginTransaction();
        heir.send(new ProducerRecord<>(to, 0, null, "heir"));
        heir.commitTransaction();
        heir.close();
    }
}
