import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.FileOutputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Random;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.InterruptException;

/**
 * One client process with Kafka's own library: {@code JavaClient JOB}, with the job and the history
 * of {@code worker.py} and {@code history.py}. Roles: sender, appender, poller.
 */
public final class JavaClient {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final int GAVE_UP = 3;
    private static volatile boolean going = true;

    private final JsonNode job;
    private final String process;
    private final Random random;
    private final FileOutputStream history;
    private int lastOp;
    private int lastValue;

    private JavaClient(JsonNode job) throws IOException {
        this.job = job;
        process = job.get("name").asText() + "." + job.get("incarnation").asInt();
        random = new Random((job.get("seed").asText() + " " + process).hashCode());
        Path path = Path.of(job.get("history").asText(), process + ".jsonl");
        history = new FileOutputStream(path.toFile(), true);
    }

    public static void main(String[] arguments) throws Exception {
        JavaClient client = new JavaClient(JSON.readTree(arguments[0]));
        Thread worker = Thread.currentThread();
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            going = false;
            try {
                worker.join(10_000);
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
            }
        }));
        String role = client.job.get("role").asText();
        boolean done;
        switch (role) {
            case "sender": done = client.send(); break;
            case "appender": done = client.append(); break;
            case "poller": done = client.poll(); break;
            default: throw new IllegalArgumentException(role);
        }
        if (!done) {
            Runtime.getRuntime().halt(GAVE_UP);
        }
    }

    // ---- what is noted

    private synchronized void note(String f, String type, int op, ObjectNode more) {
        ObjectNode line = JSON.createObjectNode();
        line.put("time", System.nanoTime()).put("process", process).put("f", f).put("type", type);
        if (op >= 0) {
            line.put("op", op);
        }
        line.setAll(more);
        try {
            history.write((line + "\n").getBytes(StandardCharsets.UTF_8));
        } catch (IOException e) {
            throw new IllegalStateException(e);
        }
    }

    private static ObjectNode none() {
        return JSON.createObjectNode();
    }

    private String fresh() {
        return process + ":" + ++lastValue;
    }

    private String anyKey() {
        JsonNode keys = job.get("keys");
        return keys.get(random.nextInt(keys.size())).asText();
    }

    private static TopicPartition place(String key) {
        int at = key.lastIndexOf('-');
        return new TopicPartition(key.substring(0, at), Integer.parseInt(key.substring(at + 1)));
    }

    private static ArrayNode sends(Map<String, String> keyByValue) {
        ArrayNode steps = JSON.createArrayNode();
        keyByValue.forEach((value, key) -> steps.addArray().add("send").add(key).add(value));
        return steps;
    }

    private Properties properties() {
        Properties properties = new Properties();
        properties.put("bootstrap.servers", job.get("bootstrap").asText());
        String text = "org.apache.kafka.common.serialization.String";
        properties.put("key.serializer", text + "Serializer");
        properties.put("value.serializer", text + "Serializer");
        properties.put("key.deserializer", text + "Deserializer");
        properties.put("value.deserializer", text + "Deserializer");
        properties.put("request.timeout.ms", "3000");
        properties.put("reconnect.backoff.max.ms", "200");
        return properties;
    }

    // ---- transactions

    private boolean send() throws InterruptedException {
        Properties properties = properties();
        properties.put("transactional.id", job.get("name").asText());
        properties.put("transaction.timeout.ms", "8000");
        properties.put("delivery.timeout.ms", "25000");
        properties.put("max.block.ms", "25000");
        KafkaProducer<String, String> producer = new KafkaProducer<>(properties);
        try {
            producer.initTransactions();
        } catch (KafkaException e) {
            System.out.println(process + " gave up: " + e);
            return false;
        }
        while (going) {
            if (!transaction(producer)) {
                return false;
            }
            Thread.sleep(random.nextInt(30));
        }
        producer.close(Duration.ofSeconds(5));
        return true;
    }

    /** One transaction; false if a new producer has to take over. */
    private boolean transaction(KafkaProducer<String, String> producer) throws InterruptedException {
        int op = ++lastOp;
        Map<String, String> keyByValue = new LinkedHashMap<>();
        for (int left = 1 + random.nextInt(5); left > 0; left--) {
            keyByValue.put(fresh(), anyKey());
        }
        ObjectNode begun = none().put("transactional_id", job.get("name").asText());
        begun.set("value", sends(keyByValue));
        note("txn", "invoke", op, begun);
        boolean asked = false;
        ObjectNode more = none();
        try {
            producer.beginTransaction();
            Map<String, Future<RecordMetadata>> answers = new LinkedHashMap<>();
            keyByValue.forEach((value, key) -> answers.put(value, producer.send(record(key, value))));
            producer.flush();
            ObjectNode acks = more.putObject("acks");
            for (Map.Entry<String, Future<RecordMetadata>> each : answers.entrySet()) {
                RecordMetadata told = each.getValue().get();
                if (told.hasOffset()) {
                    acks.put(each.getKey(), told.offset());
                }
            }
            if (random.nextInt(5) == 0) {
                producer.abortTransaction();
                note("txn", "fail", op, none().put("error", "by choice"));
                return true;
            }
            asked = true;
            note("txn", "committing", op, more);
            producer.commitTransaction();
            note("txn", "ok", op, none());
            return true;
        } catch (KafkaException | ExecutionException e) {
            ObjectNode why = none().put("error", String.valueOf(e));
            if (!asked) {
                try {
                    producer.abortTransaction();
                    note("txn", "fail", op, why);
                    return true;
                } catch (KafkaException fenced) {
                    why.put("error", e + ", then " + fenced);
                }
            }
            note("txn", asked ? "info" : "fail", op, why);
            System.out.println(process + " gave up: " + why);
            return false;
        }
    }

    private static ProducerRecord<String, String> record(String key, String value) {
        TopicPartition place = place(key);
        return new ProducerRecord<>(place.topic(), place.partition(), null, value);
    }

    // ---- an idempotent producer without transactions

    private boolean append() throws InterruptedException {
        Properties properties = properties();
        properties.put("acks", "all");
        properties.put("enable.idempotence", "true");
        properties.put("delivery.timeout.ms", "120000");
        properties.put("max.block.ms", "60000");
        KafkaProducer<String, String> producer = new KafkaProducer<>(properties);
        boolean[] failed = {false};
        while (going && !failed[0]) {
            for (int left = 1 + random.nextInt(20); left > 0; left--) {
                int op = ++lastOp;
                String value = fresh();
                String key = anyKey();
                ObjectNode begun = none().put("transactional_id", process).put("plain", true);
                begun.set("value", sends(Map.of(value, key)));
                note("txn", "invoke", op, begun);
                note("txn", "committing", op, none());
                try {
                    producer.send(record(key, value), (told, error) -> answered(op, value, told, error, failed));
                } catch (KafkaException e) {
                    note("txn", "info", op, none().put("error", e.toString()));
                    failed[0] = true;
                }
            }
            Thread.sleep(50 + random.nextInt(250));
        }
        producer.close(Duration.ofSeconds(8));
        return !failed[0];
    }

    private void answered(int op, String value, RecordMetadata told, Exception error, boolean[] failed) {
        if (error != null) {
            failed[0] = true;
            note("txn", "info", op, none().put("error", error.toString()));
            return;
        }
        ObjectNode more = none();
        ObjectNode acks = more.putObject("acks");
        if (told.hasOffset()) {
            acks.put(value, told.offset());
        }
        note("txn", "ok", op, more);
    }

    // ---- a reader

    private boolean poll() {
        Properties properties = properties();
        boolean member = job.get("subscribe").asBoolean();
        properties.put("isolation.level", "read_committed");
        properties.put("enable.auto.commit", "false");
        properties.put("auto.offset.reset", "earliest");
        properties.put("session.timeout.ms", "6000");
        properties.put("heartbeat.interval.ms", "500");
        properties.put("max.partition.fetch.bytes", "4000");
        if (member) {
            properties.put("group.id", job.get("group").asText());
        }
        List<TopicPartition> places = new ArrayList<>();
        job.get("keys").forEach(key -> places.add(place(key.asText())));
        KafkaConsumer<String, String> consumer = new KafkaConsumer<>(properties);
        if (member) {
            List<String> topics = places.stream().map(TopicPartition::topic).distinct().toList();
            consumer.subscribe(topics, new ConsumerRebalanceListener() {
                @Override
                public void onPartitionsRevoked(Collection<TopicPartition> revoked) {
                }

                @Override
                public void onPartitionsAssigned(Collection<TopicPartition> assigned) {
                    moved(assigned);
                }
            });
        } else {
            consumer.assign(places);
            consumer.seekToBeginning(places);
            moved(places);
        }
        while (going) {
            Map<String, ArrayNode> found = new LinkedHashMap<>();
            Map<TopicPartition, OffsetAndMetadata> following = new HashMap<>();
            try {
                for (ConsumerRecord<String, String> each : consumer.poll(Duration.ofMillis(300))) {
                    String key = each.topic() + "-" + each.partition();
                    found.computeIfAbsent(key, k -> JSON.createArrayNode())
                        .addArray().add(each.offset()).add(each.value());
                    following.put(place(key), new OffsetAndMetadata(each.offset() + 1));
                }
                if (!found.isEmpty()) {
                    ObjectNode more = none();
                    more.putObject("value").setAll(found);
                    note("poll", "ok", -1, more);
                    if (member) {
                        consumer.commitAsync(following, null);
                    }
                }
            } catch (InterruptException e) {
                break;
            } catch (KafkaException e) {
                System.out.println(process + " gave up: " + e);
                return false;
            }
        }
        consumer.close(Duration.ofSeconds(3));
        return true;
    }

    private void moved(Collection<TopicPartition> places) {
        ObjectNode more = none();
        ArrayNode keys = more.putArray("value");
        places.forEach(place -> keys.add(place.topic() + "-" + place.partition()));
        note("assign", "ok", -1, more);
    }
}
