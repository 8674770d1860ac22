import java.time.Duration;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.serialization.SimpleStringSchema;
import org.apache.flink.api.common.state.ValueState;
import org.apache.flink.api.common.state.ValueStateDescriptor;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.connector.base.DeliveryGuarantee;
import org.apache.flink.connector.kafka.sink.KafkaRecordSerializationSchema;
import org.apache.flink.connector.kafka.sink.KafkaSink;
import org.apache.flink.connector.kafka.source.KafkaSource;
import org.apache.flink.connector.kafka.source.enumerator.initializer.OffsetsInitializer;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.KeyedProcessFunction;
import org.apache.flink.util.Collector;

/**
 * A Flink job, exactly once: "account amount" in, "account count total" out, in transactions that
 * checkpoints commit. The cluster is in this process; what it goes on from after a kill is given.
 *
 * Arguments: bootstrap servers, directory of the checkpoints, the checkpoint to go on from or "none".
 */
public final class Totals {
    /** Number and sum of an account's amounts so far. */
    static final class Running extends KeyedProcessFunction<String, String, String> {
        private transient ValueState<Long> count;
        private transient ValueState<Long> total;

        @Override
        public void open(Configuration unused) {
            count = getRuntimeContext().getState(new ValueStateDescriptor<>("count", Long.class));
            total = getRuntimeContext().getState(new ValueStateDescriptor<>("total", Long.class));
        }

        @Override
        public void processElement(String line, Context context, Collector<String> out)
                throws Exception {
            long amount = Long.parseLong(line.split(" ")[1]);
            count.update((count.value() == null ? 0 : count.value()) + 1);
            total.update((total.value() == null ? 0 : total.value()) + amount);
            out.collect(context.getCurrentKey() + " " + count.value() + " " + total.value());
        }
    }

    public static void main(String[] args) throws Exception {
        Configuration settings = new Configuration();
        settings.setString("execution.checkpointing.interval", "500 ms");
        settings.setString("execution.checkpointing.dir", "file://" + args[1]);
        settings.setString("execution.checkpointing.externalized-checkpoint-retention",
                "RETAIN_ON_CANCELLATION");
        settings.setString("restart-strategy.type", "fixed-delay");
        settings.setString("restart-strategy.fixed-delay.attempts", "1000");
        settings.setString("restart-strategy.fixed-delay.delay", "500 ms");
        settings.setString("taskmanager.memory.network.min", "32 mb");
        settings.setString("taskmanager.memory.network.max", "32 mb");
        settings.setString("taskmanager.memory.managed.size", "32 mb");
        settings.setString("rest.port", "0");
        settings.setString("rest.address", "127.0.0.1");
        if (!args[2].equals("none")) {
            settings.setString("execution.state-recovery.path", args[2]);
        }
        StreamExecutionEnvironment environment =
                StreamExecutionEnvironment.getExecutionEnvironment(settings);
        environment.setParallelism(2);
        KafkaSource<String> source = KafkaSource.<String>builder()
                .setBootstrapServers(args[0])
                .setTopics("in")
                .setGroupId("totals")
                .setStartingOffsets(OffsetsInitializer.earliest())
                .setValueOnlyDeserializer(new SimpleStringSchema())
                .setProperty("partition.discovery.interval.ms", "1000")
                .build();
        KafkaSink<String> sink = KafkaSink.<String>builder()
                .setBootstrapServers(args[0])
                .setRecordSerializer(KafkaRecordSerializationSchema.<String>builder()
                        .setTopic("out")
                        .setKeySerializationSchema(new SimpleStringSchema() {
                            @Override
                            public byte[] serialize(String line) {
                                return super.serialize(line.split(" ")[0]);
                            }
                        })
                        .setValueSerializationSchema(new SimpleStringSchema())
                        .build())
                .setDeliveryGuarantee(DeliveryGuarantee.EXACTLY_ONCE)
                .setTransactionalIdPrefix("totals")
                .setProperty("transaction.timeout.ms", "60000")
                .build();
        DataStream<String> lines =
                environment.fromSource(source, WatermarkStrategy.noWatermarks(), "in");
        lines.keyBy(line -> line.split(" ")[0]).process(new Running()).sinkTo(sink);
        environment.execute("totals");
    }
}
