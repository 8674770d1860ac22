import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.net.InetAddress;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import java.util.List;
import java.util.Optional;

import org.apache.kafka.common.errors.ThrottlingQuotaExceededException;
import org.apache.kafka.common.metrics.MetricConfig;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.metrics.Quota;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.common.utils.internals.Sanitizer;
import org.apache.kafka.network.Session;
import org.apache.kafka.server.config.ClientQuotaManagerConfig;
import org.apache.kafka.server.quota.ClientQuotaEntity;
import org.apache.kafka.server.quota.ClientQuotaManager;
import org.apache.kafka.server.quota.ControllerMutationQuota;
import org.apache.kafka.server.quota.ControllerMutationQuotaManager;
import org.apache.kafka.server.quota.QuotaType;

/**
 * Apache Kafka's quota managers as an oracle, at the times that each line of input says:
 *
 *   SAMPLES SECONDS                     first line: the windows
 *   set USER CLIENT BOUND               USER, CLIENT: a name, * for the default, - for none;
 *                                       BOUND: a number or "none". Both managers. Answers "ok"
 *   spend MS USER CLIENT VALUE          throttle time of the rate
 *   back MS USER CLIENT VALUE           takes back; "ok"
 *   most USER CLIENT                    the most that may be taken at once
 *   change MS USER CLIENT STRICT COUNT  throttle time of the bucket, "refused TIME" where it refuses
 *   name HEX                            the name as it stands in paths and metrics
 *
 * An empty client id is written as ''.
 */
public class QuotaOracle {
    static class Clock implements Time {
        long now = 0;

        @Override
        public long milliseconds() {
            return now;
        }

        @Override
        public long nanoseconds() {
            return now * 1_000_000;
        }

        @Override
        public void sleep(long ms) {
            throw new UnsupportedOperationException();
        }
    }

    static final Clock CLOCK = new Clock();

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        String[] windows = in.readLine().split(" ");
        ClientQuotaManagerConfig config = new ClientQuotaManagerConfig(
            Integer.parseInt(windows[0]), Integer.parseInt(windows[1]));
        ClientQuotaManager bytes = new ClientQuotaManager(
            config, new Metrics(new MetricConfig(), List.of(), CLOCK), QuotaType.PRODUCE, CLOCK, "", Optional.empty());
        ControllerMutationQuotaManager changes = new ControllerMutationQuotaManager(
            config, new Metrics(new MetricConfig(), List.of(), CLOCK), CLOCK, "", Optional.empty());
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            System.out.println(answer(bytes, changes, line.split(" ")));
        }
        System.out.flush();
        Runtime.getRuntime().halt(0);
    }

    static String answer(ClientQuotaManager bytes, ControllerMutationQuotaManager changes, String[] asked)
            throws Exception {
        switch (asked[0]) {
            case "set":
                for (ClientQuotaManager manager : List.of(bytes, changes)) {
                    manager.updateQuota(user(asked[1]), client(asked[2]), asked[3].equals("none")
                        ? Optional.empty() : Optional.of(new Quota(Double.parseDouble(asked[3]), true)));
                }
                return "ok";
            case "name":
                return Sanitizer.sanitize(new String(HexFormat.of().parseHex(asked[1]), StandardCharsets.UTF_8));
            case "most":
                return Double.toString(bytes.maxValueInQuotaWindow(session(asked[1]), name(asked[2])));
            default:
        }
        CLOCK.now = Long.parseLong(asked[1]);
        Session session = session(asked[2]);
        String client = name(asked[3]);
        switch (asked[0]) {
            case "spend":
                return Integer.toString(bytes.maybeRecordAndGetThrottleTimeMs(
                    session, client, Double.parseDouble(asked[4]), CLOCK.now));
            case "back":
                if (bytes.quotasEnabled()) {
                    bytes.unrecordQuotaSensor(session, client, Double.parseDouble(asked[4]), CLOCK.now);
                }
                return "ok";
            case "change":
                ControllerMutationQuota quota = Boolean.parseBoolean(asked[4])
                    ? changes.newStrictQuotaFor(session, client) : changes.newPermissiveQuotaFor(session, client);
                try {
                    quota.record(Double.parseDouble(asked[5]));
                } catch (ThrottlingQuotaExceededException error) {
                    return "refused " + quota.throttleTime();
                }
                return Integer.toString(quota.throttleTime());
            default:
                throw new IllegalArgumentException(asked[0]);
        }
    }

    static Session session(String user) throws Exception {
        return new Session(new KafkaPrincipal(KafkaPrincipal.USER_TYPE, user), InetAddress.getLoopbackAddress());
    }

    static String name(String text) {
        return text.equals("''") ? "" : text;
    }

    static Optional<ClientQuotaEntity.ConfigEntity> user(String text) {
        if (text.equals("-")) {
            return Optional.empty();
        }
        return Optional.of(text.equals("*") ? ClientQuotaManager.DEFAULT_USER_ENTITY
            : new ClientQuotaManager.UserEntity(text));
    }

    static Optional<ClientQuotaEntity.ConfigEntity> client(String text) {
        if (text.equals("-")) {
            return Optional.empty();
        }
        return Optional.of(text.equals("*") ? ClientQuotaManager.DEFAULT_USER_CLIENT_ID
            : new ClientQuotaManager.ClientIdEntity(name(text)));
    }
}
