import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.CreateTopicsOptions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.common.errors.ThrottlingQuotaExceededException;

/**
 * Makes three topics of 20 partitions with a client id whose quota of changes is spent by the first two: refused
 * without another try, made with. Arguments: bootstrap servers, client id, prefix of the topics.
 */
public class TopicsBeyondQuota {
    public static void main(String[] args) throws Exception {
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", args[0], "client.id", args[1]))) {
            var once = new CreateTopicsOptions().retryOnQuotaViolation(false);
            for (int i = 0; i < 2; i++)
                admin.createTopics(List.of(new NewTopic(args[2] + i, 20, (short) 1)), once).all().get();
            var third = List.of(new NewTopic(args[2] + 2, 20, (short) 1));
            try {
                admin.createTopics(third, once).all().get();
                System.out.println("not refused");
            } catch (java.util.concurrent.ExecutionException refused) {
                var cause = (ThrottlingQuotaExceededException) refused.getCause();
                System.out.println("refused for " + cause.throttleTimeMs());
            }
            long began = System.nanoTime();
            admin.createTopics(third).all().get();
            System.out.println("made after " + (System.nanoTime() - began) / 1_000_000);
        }
    }
}
