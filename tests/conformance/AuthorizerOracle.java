import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.net.InetAddress;
import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.acl.AccessControlEntryFilter;
import org.apache.kafka.common.acl.AclBindingFilter;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.acl.AclPermissionType;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.metrics.internals.PluginMetricsImpl;
import org.apache.kafka.common.resource.PatternType;
import org.apache.kafka.common.resource.ResourcePattern;
import org.apache.kafka.common.resource.ResourcePatternFilter;
import org.apache.kafka.common.resource.ResourceType;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.security.auth.SecurityProtocol;
import org.apache.kafka.metadata.authorizer.StandardAcl;
import org.apache.kafka.metadata.authorizer.StandardAuthorizer;
import org.apache.kafka.server.authorizer.Action;
import org.apache.kafka.server.authorizer.AuthorizableRequestContext;
import org.apache.kafka.server.authorizer.AuthorizationResult;

/** Has Apache Kafka's StandardAuthorizer decide, line by line, for test_acls_against_kafka.py. */
public class AuthorizerOracle {
    private static final class Context implements AuthorizableRequestContext {
        final KafkaPrincipal principal;
        final InetAddress address;
        final int api;

        Context(String principal, String host, int api) throws Exception {
            String[] parts = principal.split(":", 2);
            this.principal = new KafkaPrincipal(parts[0], parts[1]);
            this.address = InetAddress.getByName(host);
            this.api = api;
        }

        @Override public String listenerName() { return "PLAINTEXT"; }
        @Override public SecurityProtocol securityProtocol() { return SecurityProtocol.PLAINTEXT; }
        @Override public KafkaPrincipal principal() { return principal; }
        @Override public InetAddress clientAddress() { return address; }
        @Override public int requestType() { return api; }
        @Override public int requestVersion() { return 0; }
        @Override public String clientId() { return "oracle"; }
        @Override public int correlationId() { return 0; }
    }

    public static void main(String[] args) throws Exception {
        var in = new BufferedReader(new InputStreamReader(System.in, "UTF-8"));
        var out = new java.io.PrintStream(System.out, true, "UTF-8");
        StandardAuthorizer authorizer = null;
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] f = line.split("\t", -1);
            switch (f[0]) {
                case "begin":
                    authorizer = new StandardAuthorizer();
                    Map<String, Object> configs = new HashMap<>();
                    configs.put("super.users", f[1]);
                    configs.put("allow.everyone.if.no.acl.found", f[2]);
                    authorizer.configure(configs);
                    authorizer.withPluginMetrics(new PluginMetricsImpl(new Metrics(), Map.of()));
                    authorizer.completeInitialLoad();
                    break;
                case "rule":
                    authorizer.addAcl(Uuid.randomUuid(), new StandardAcl(ResourceType.fromString(f[1]), f[2],
                        PatternType.fromString(f[3]), f[4], f[5], AclOperation.fromString(f[6]),
                        AclPermissionType.fromString(f[7])));
                    break;
                case "ask":
                    out.println(ask(authorizer, new Context(f[1], f[2], Integer.parseInt(f[6])), new Action(
                        AclOperation.fromString(f[3]),
                        new ResourcePattern(ResourceType.fromString(f[4]), f[5], PatternType.LITERAL),
                        Integer.parseInt(f[7]), true, true)));
                    break;
                case "any":
                    out.println(authorizer.authorizeByResourceType(new Context(f[1], f[2], 22),
                        AclOperation.fromString(f[3]), ResourceType.fromString(f[4])));
                    break;
                case "filter":
                    var filter = new AclBindingFilter(
                        new ResourcePatternFilter(ResourceType.fromString(f[1]), orNull(f[2]), PatternType.fromString(f[3])),
                        new AccessControlEntryFilter(orNull(f[4]), orNull(f[5]), AclOperation.fromString(f[6]),
                            AclPermissionType.fromString(f[7])));
                    StringBuilder found = new StringBuilder();
                    for (var binding : authorizer.acls(filter))
                        found.append(StandardAcl.fromAclBinding(binding)).append('\t');
                    out.println(found);
                    break;
                default:
                    throw new IllegalArgumentException(line);
            }
        }
    }

    private static String orNull(String text) {
        return text.isEmpty() ? null : text;
    }

    /** The decision, and the line of the audit log. */
    private static String ask(StandardAuthorizer authorizer, Context context, Action action) throws Exception {
        Field field = StandardAuthorizer.class.getDeclaredField("data");
        field.setAccessible(true);
        Object data = field.get(authorizer);
        AuthorizationResult result = authorizer.authorize(context, java.util.List.of(action)).get(0);
        Object rule;
        Field supers = data.getClass().getDeclaredField("superUsers");
        supers.setAccessible(true);
        Class<?> superRule = Class.forName(data.getClass().getName() + "$SuperUserRule");
        if (((Set<?>) supers.get(data)).contains(context.principal.toString())) {
            Field instance = superRule.getDeclaredField("INSTANCE");
            instance.setAccessible(true);
            rule = instance.get(null);
        } else {
            Method find = data.getClass().getDeclaredMethod("findAclRule", Set.class, String.class, Action.class);
            find.setAccessible(true);
            rule = find.invoke(data, Set.of(context.principal, new KafkaPrincipal("User", "*")),
                context.address.getHostAddress(), action);
        }
        Class<?> matching = Class.forName(data.getClass().getName() + "$MatchingRule");
        Method message = data.getClass().getDeclaredMethod("buildAuditMessage", KafkaPrincipal.class,
            AuthorizableRequestContext.class, Action.class, matching);
        message.setAccessible(true);
        return result + "\t" + message.invoke(data, context.principal, context, action, rule);
    }
}
