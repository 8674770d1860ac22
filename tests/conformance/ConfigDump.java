import java.util.TreeMap;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.server.config.ServerTopicConfigSynonyms;
import org.apache.kafka.storage.internals.log.LogConfig;

/** Prints Apache Kafka's own tables of keys, tab separated, for test_config_tables.py. */
public class ConfigDump {
    public static void main(String[] args) throws Exception {
        dump("broker", (ConfigDef) Class.forName("kafka.server.KafkaConfig").getMethod("configDef").invoke(null));
        dump("topic", LogConfig.configDefCopy());
        for (var entry : new TreeMap<>(ServerTopicConfigSynonyms.ALL_TOPIC_CONFIG_SYNONYMS).entrySet())
            System.out.println("synonyms\t" + entry.getKey() + "\t"
                + String.join(",", entry.getValue().stream().map(s -> s.name()).toList()));
        var modes = (java.util.Map<?, ?>) Class.forName("org.apache.kafka.server.config.DynamicBrokerConfig")
            .getMethod("dynamicConfigUpdateModes").invoke(null);
        for (var entry : modes.entrySet())
            System.out.println("mode\t" + entry.getKey() + "\t" + entry.getValue());
    }

    private static void dump(String table, ConfigDef definition) {
        for (var key : new TreeMap<>(definition.configKeys()).values()) {
            String value = !key.hasDefault() ? "(required)"
                : key.defaultValue == null ? "null"
                : ConfigDef.convertToString(key.defaultValue, key.type);
            System.out.println(String.join("\t", table, key.name, key.type.name(), value, key.importance.name(),
                key.validator instanceof ConfigDef.Range ? key.validator.toString() : ""));
        }
    }
}
