import java.io.BufferedReader;
import java.io.DataInputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.net.StandardSocketOptions;
import java.nio.ByteBuffer;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.nio.channels.SocketChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.concurrent.locks.LockSupport;

/**
 * Sends Kafka frames that others have built, on many connections, and measures the replies. load.py drives it: a
 * line of words (mode key=value …) on standard input is a run, and its figures are a line of JSON.
 *
 * load    as many requests as the broker answers, `inflight` of each connection unanswered
 * paced   `rate` requests a second, a thread for each connection; a request that had to wait for the reply to the
 *         one before counts from when it was due
 * chains  connection n sends `steps` frames, each after the reply to the last; the run ends with the last reply
 * tail    `connections` long polls of one partition, and a producer of `rate` records a second
 *
 * `frames` is a file of frames, each with its size in front. Connection n of a load begins with frame n, then n + 1,
 * and so on around. Figures are of the time after `warm` seconds; CPU is that of process `pid` and of this one.
 */
public class FrameLoad {
    static final int KEPT = 1 << 16;
    static final ByteBuffer BUFFER = ByteBuffer.allocateDirect(1 << 20);
    static final long PATIENCE = 30_000_000_000L;

    public static void main(String[] args) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line; (line = lines.readLine()) != null;) {
            String[] words = line.split(" ");
            Map<String, String> given = new HashMap<>();
            for (int i = 1; i < words.length; i++) given.put(words[i].split("=")[0], words[i].split("=")[1]);
            String told;
            try {
                FrameLoad run = new FrameLoad(given);
                told = switch (words[0]) {
                    case "load" -> run.load();
                    case "paced" -> run.paced();
                    case "chains" -> run.chains();
                    case "tail" -> run.tail();
                    default -> throw new IllegalArgumentException(words[0]);
                };
            } catch (Exception e) {
                e.printStackTrace();
                told = "{\"error\": \"" + e.toString().replace('"', '\'') + "\"}";
            }
            System.out.println(told);
        }
    }

    final Map<String, String> given;
    final List<ByteBuffer> frames = new ArrayList<>();
    final InetSocketAddress address;
    final int connections;
    final long warm;
    final long measured;
    Selector selector;
    final List<Link> links = new ArrayList<>();

    long begin, end, requests, odd;
    long[] cpu = new long[2];
    long[] cpuAtEnd;
    int size = -1;
    byte[] reply = new byte[0];
    long[] took = new long[1 << 16];
    int count;

    FrameLoad(Map<String, String> given) throws IOException {
        this.given = given;
        address = new InetSocketAddress("127.0.0.1", number("port"));
        connections = number("connections");
        warm = (long) (Double.parseDouble(given.getOrDefault("warm", "0")) * 1e9);
        measured = (long) (Double.parseDouble(given.getOrDefault("seconds", "0")) * 1e9);
        byte[] all = Files.readAllBytes(Path.of(given.get("frames")));
        ByteBuffer direct = ByteBuffer.allocateDirect(all.length).put(all).flip();
        while (direct.hasRemaining()) {
            int length = direct.getInt(direct.position()) + 4;
            frames.add(direct.slice(direct.position(), length));
            direct.position(direct.position() + length);
        }
    }

    int number(String name) {
        return Integer.parseInt(given.get(name));
    }

    /** One connection of the selector: frames go out, replies are counted and skipped. */
    final class Link {
        final int index;
        final SocketChannel channel;
        SelectionKey key;
        final ArrayDeque<ByteBuffer> out = new ArrayDeque<>();
        final ArrayDeque<Long> sentAt = new ArrayDeque<>();
        int next, left, replied, lastSize;
        final ByteBuffer head = ByteBuffer.allocate(4);
        byte[] kept = new byte[0];
        boolean keeps;
        ByteBuffer own;
        long offset;

        Link(int index) throws IOException {
            this.index = index;
            channel = SocketChannel.open(address);
            channel.setOption(StandardSocketOptions.TCP_NODELAY, true);
            channel.configureBlocking(false);
            keeps = index == 0;
        }

        void send(ByteBuffer frame, long now) {
            out.add(frame);
            sentAt.add(now);
        }

        void flush() throws IOException {
            if (out.isEmpty()) return;
            if (out.size() == 1) channel.write(out.peek());
            else channel.write(out.toArray(new ByteBuffer[0]));
            while (!out.isEmpty() && !out.peek().hasRemaining()) out.poll();
            int wanted = out.isEmpty() ? SelectionKey.OP_READ : SelectionKey.OP_READ | SelectionKey.OP_WRITE;
            if (key.interestOps() != wanted) key.interestOps(wanted);
        }

        /** Takes what has come; returns the number of replies that are complete. */
        int receive() throws IOException {
            BUFFER.clear();
            if (channel.read(BUFFER) < 0) throw new IOException("the broker hung up");
            BUFFER.flip();
            int complete = 0;
            while (BUFFER.hasRemaining()) {
                if (left == 0) {
                    while (head.hasRemaining() && BUFFER.hasRemaining()) head.put(BUFFER.get());
                    if (head.hasRemaining()) break;
                    lastSize = left = head.getInt(0);
                    head.clear();
                    if (keeps) kept = new byte[Math.min(left, KEPT)];
                    continue;
                }
                int part = Math.min(left, BUFFER.remaining());
                int done = lastSize - left;
                if (keeps && done < kept.length) {
                    BUFFER.get(BUFFER.position(), kept, done, Math.min(part, kept.length - done));
                }
                BUFFER.position(BUFFER.position() + part);
                left -= part;
                if (left == 0) complete++;
            }
            return complete;
        }
    }

    void connect() throws IOException {
        selector = Selector.open();
        for (int i = 0; i < connections; i++) {
            Link link = new Link(i);
            link.key = link.channel.register(selector, SelectionKey.OP_READ, link);
            links.add(link);
        }
    }

    void close() throws IOException {
        for (Link link : links) link.channel.close();
        selector.close();
    }

    String load() throws IOException {
        connect();
        int inflight = number("inflight");
        begin = System.nanoTime() + warm;
        end = begin + measured;
        for (Link link : links) {
            link.next = link.index;
            more(link, inflight, System.nanoTime());
        }
        boolean[] began = {false};
        while (System.nanoTime() < end) {
            selector.select(key -> step(key, true), 100);
            if (!began[0] && System.nanoTime() >= begin) {
                began[0] = true;
                cpu = cpuNow();
                begin = System.nanoTime();
                requests = count = 0;
            }
        }
        finish();
        String told = figures();
        while (links.stream().anyMatch(link -> !link.sentAt.isEmpty()) && System.nanoTime() < end + PATIENCE) {
            selector.select(key -> step(key, false), 100);
        }
        close();
        return told;
    }

    /** What a ready connection does. */
    void step(SelectionKey key, boolean goesOn) {
        Link link = (Link) key.attachment();
        try {
            if (key.isReadable()) {
                int complete = link.receive();
                long now = System.nanoTime();
                for (int i = 0; i < complete; i++) note(now - link.sentAt.poll());
                if (complete > 0) {
                    if (size < 0) size = link.lastSize;
                    if (link.lastSize != size) odd++;
                    if (link.keeps) reply = link.kept;
                    if (goesOn) more(link, complete, now);
                }
            }
            link.flush();
        } catch (IOException e) {
            throw new java.io.UncheckedIOException(e);
        }
    }

    void more(Link link, int number, long now) throws IOException {
        for (int i = 0; i < number; i++) link.send(frames.get(link.next++ % frames.size()).duplicate(), now);
        link.flush();
    }

    void note(long nanos) {
        requests++;
        if (count == took.length) took = Arrays.copyOf(took, 2 * count);
        took[count++] = nanos;
    }

    String chains() throws IOException {
        connect();
        int steps = number("steps");
        cpu = cpuNow();
        begin = System.nanoTime();
        for (Link link : links) {
            link.keeps = true;
            chain(link, steps);
        }
        long[] open = {connections};
        while (open[0] > 0) {
            if (System.nanoTime() > begin + PATIENCE) throw new IOException(open[0] + " chains did not end");
            selector.select(key -> {
                Link link = (Link) key.attachment();
                try {
                    if (key.isReadable() && link.receive() > 0) {
                        note(System.nanoTime() - link.sentAt.poll());
                        if (++link.replied == steps) open[0]--;
                        else chain(link, steps);
                    }
                    link.flush();
                } catch (IOException e) {
                    throw new java.io.UncheckedIOException(e);
                }
            }, 100);
        }
        finish();
        size = links.get(0).lastSize;
        odd = links.stream().filter(link -> link.lastSize != size).count();
        reply = links.get(0).kept;
        close();
        return figures();
    }

    void chain(Link link, int steps) throws IOException {
        link.send(frames.get(link.index * steps + link.replied).duplicate(), System.nanoTime());
        link.flush();
    }

    String paced() throws Exception {
        double rate = Double.parseDouble(given.get("rate"));
        long interval = (long) (connections / rate * 1e9);
        long start = System.nanoTime() + 50_000_000;
        begin = start + warm;
        end = begin + measured;
        Thread[] threads = new Thread[connections];
        Exception[] failed = new Exception[1];
        for (int i = 0; i < connections; i++) {
            int index = i;
            threads[i] = new Thread(() -> {
                try {
                    pace(index, start + interval * index / connections, interval);
                } catch (Exception e) {
                    failed[0] = e;
                }
            });
            threads[i].start();
        }
        LockSupport.parkNanos(begin - System.nanoTime());
        cpu = cpuNow();
        for (Thread thread : threads) thread.join();
        finish();
        if (failed[0] != null) throw failed[0];
        return figures();
    }

    void pace(int index, long due, long interval) throws IOException {
        byte[] frame = new byte[frames.get(index % frames.size()).capacity()];
        frames.get(index % frames.size()).get(0, frame);
        try (Socket socket = new Socket("127.0.0.1", address.getPort())) {
            socket.setTcpNoDelay(true);
            DataInputStream in = new DataInputStream(socket.getInputStream());
            for (; due < end; due += interval) {
                long from = due;
                while (System.nanoTime() < due) {
                    LockSupport.parkNanos(due - System.nanoTime());
                    from = System.nanoTime(); // waking late is no fault of the broker's
                }
                socket.getOutputStream().write(frame);
                byte[] answer = in.readNBytes(in.readInt());
                long now = System.nanoTime();
                if (due < begin) continue;
                synchronized (this) {
                    note(now - from);
                    reply = answer;
                    if (size < 0) size = answer.length;
                    if (answer.length != size) odd++;
                }
            }
        }
    }

    /** Frame 0 is a Fetch whose offset is at `offsetAt`, frame 1 a Produce of one record. */
    String tail() throws IOException {
        connect();
        int offsetAt = number("offsetAt"), watermarkAt = number("watermarkAt"), rate = number("rate");
        long first = number("start");
        int warmRecords = (int) (warm * rate / 1_000_000_000), records = (int) (measured * rate / 1_000_000_000);
        long[] sent = new long[warmRecords + records], soonest = new long[sent.length], latest = new long[sent.length];
        int[] reached = new int[sent.length];
        for (Link link : links) {
            link.keeps = true;
            link.own = ByteBuffer.allocateDirect(frames.get(0).capacity()).put(frames.get(0).duplicate());
            link.offset = first;
            poll(link, offsetAt);
        }
        Link producer = new Link(connections);
        producer.key = producer.channel.register(selector, SelectionKey.OP_READ, producer);
        links.add(producer);
        List<Link> ready = new ArrayList<>();
        long due = System.nanoTime() + 200_000_000;
        int produced = 0;
        long[] delivered = {0, 0};
        long deadline = due + warm + measured + PATIENCE;
        while (produced < sent.length || delivered[0] < (long) sent.length * connections) {
            long now = System.nanoTime();
            if (now > deadline) throw new IOException(delivered[0] + " deliveries of " + (long) sent.length * connections);
            if (produced < sent.length && now >= due) {
                if (produced == warmRecords) {
                    cpu = cpuNow();
                    delivered[1] = delivered[0];
                    begin = now;
                }
                sent[produced++] = now = System.nanoTime();
                producer.send(frames.get(1).duplicate(), now);
                producer.flush();
                due += 1_000_000_000 / rate;
            }
            long wait = produced < sent.length ? (due - System.nanoTime()) / 1_000_000 + 1 : 100;
            selector.select(key -> {
                Link link = (Link) key.attachment();
                try {
                    if (link.receive() == 0) return;
                    long at = System.nanoTime();
                    if (link == producer) {
                        note(at - link.sentAt.poll());
                        return;
                    }
                    long watermark = ByteBuffer.wrap(link.kept).getLong(watermarkAt);
                    for (; link.offset < watermark; link.offset++) {
                        int record = (int) (link.offset - first);
                        if (reached[record]++ == 0) soonest[record] = at;
                        latest[record] = at;
                        delivered[0]++;
                    }
                    ready.add(link);
                } catch (IOException e) {
                    throw new java.io.UncheckedIOException(e);
                }
            }, Math.max(wait, 1));
            for (Link link : ready) poll(link, offsetAt); // when all that have come were seen
            ready.clear();
        }
        finish();
        count = 0; // from here on the times of deliveries
        long counted = delivered[0] - delivered[1];
        for (int i = warmRecords; i < sent.length; i++) note(soonest[i] - sent[i]);
        String firsts = times("first");
        count = 0;
        for (int i = warmRecords; i < sent.length; i++) note(latest[i] - sent[i]);
        String lasts = times("last");
        close();
        return String.format("{%s, %s, \"deliveries\": %d, %s}", firsts, lasts, counted, spent());
    }

    void poll(Link link, int offsetAt) throws IOException {
        link.own.putLong(offsetAt, link.offset).rewind();
        link.out.add(link.own);
        link.flush();
    }

    void finish() throws IOException {
        cpuAtEnd = cpuNow();
        end = System.nanoTime();
    }

    String spent() {
        return String.format("\"seconds\": %.6f, \"broker_cpu\": %.3f, \"client_cpu\": %.3f",
                (end - begin) / 1e9, (cpuAtEnd[0] - cpu[0]) / 100.0, (cpuAtEnd[1] - cpu[1]) / 100.0);
    }

    String times(String name) {
        Arrays.sort(took, 0, count);
        return String.format("\"%s_p50\": %.4f, \"%s_p99\": %.4f, \"%s_max\": %.4f",
                name, at(0.5), name, at(0.99), name, at(1));
    }

    double at(double share) {
        return count == 0 ? 0 : took[(int) Math.min(count - 1, count * share)] / 1e6;
    }

    String figures() {
        return String.format("{\"requests\": %d, %s, %s, \"odd\": %d, \"reply\": \"%s\"}",
                requests, times("ms"), spent(), odd, HexFormat.of().formatHex(reply));
    }

    /** User and system time of the broker and of this process, in hundredths of a second. */
    long[] cpuNow() throws IOException {
        return new long[] {cpuOf(given.getOrDefault("pid", "self")), cpuOf("self")};
    }

    static long cpuOf(String pid) throws IOException {
        String stat = Files.readString(Path.of("/proc", pid, "stat"));
        String[] fields = stat.substring(stat.lastIndexOf(')') + 2).split(" ");
        return Long.parseLong(fields[11]) + Long.parseLong(fields[12]);
    }
}
