import java.nio.charset.StandardCharsets;
import java.util.stream.Collectors;
import org.apache.kafka.security.authorizer.AclEntry;
import org.apache.kafka.server.util.Json;

/** Has Kafka 3.9's AclEntry read a node with access rules and write it again, for test_acls_against_kafka.py. */
public class AclNodeOracle {
    public static void main(String[] args) throws Exception {
        var entries = AclEntry.fromBytes(System.in.readAllBytes());
        System.out.println(entries.stream()
            .map(e -> e.principal() + " " + e.host() + " " + e.operation() + " " + e.permissionType())
            .collect(Collectors.joining("\t")));
        System.out.println(Json.encodeAsString(AclEntry.toJsonCompatibleMap(entries)));
    }
}
