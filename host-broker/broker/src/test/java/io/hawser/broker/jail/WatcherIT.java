package io.hawser.broker.jail;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hawser.broker.posix.PosixException;
import io.hawser.broker.posix.SystemCalls;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import java.util.logging.Handler;
import java.util.logging.LogRecord;
import java.util.logging.Logger;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** A process whose system calls the watcher answers. */
@Timeout(300)
class WatcherIT {
    private static final int ABUSE = 10_000;

    private final CompletableFuture<String> abuse = new CompletableFuture<>();
    private final SharedFiles shared = new SharedFiles(); // of the watched processes
    private List<WorkerFiles> files = List.of();

    private List<String> watch(Set<String> devices, String... acts) throws IOException, PosixException,
        InterruptedException {
        return watch(devices, Map.of(), acts);
    }

    private List<String> watch(Set<String> devices, Map<String, String> libraries, String... acts)
        throws IOException, PosixException, InterruptedException {
        List<String> command = new ArrayList<>(List.of(Path.of(System.getProperty("java.home"), "bin",
            "java").toString(), "-XX:+UseSerialGC", "-XX:-UsePerfData", "--enable-native-access=ALL-UNNAMED", "-cp",
            Path.of(WatchedProcess.class.getProtectionDomain().getCodeSource().getLocation().getPath()).toString(),
            WatchedProcess.class.getName()));
        command.addAll(List.of(acts));
        Process process = new ProcessBuilder(command).redirectError(ProcessBuilder.Redirect.INHERIT).start();
        try (BufferedReader out = process.inputReader(StandardCharsets.UTF_8);
            OutputStream in = process.getOutputStream()) {
            assertTrue(out.readLine().startsWith("begins "));
            int listener = Integer.parseInt(out.readLine().substring("listener ".length()));
            Watcher.start(1, SystemCalls.takeDescriptor((int) process.pid(), listener),
                (int) process.pid(), devices, libraries, files, !files.isEmpty(), abuse::complete);
            in.write('\n');
            in.flush();
            List<String> lines = new ArrayList<>();
            for (String line = out.readLine(); line != null; line = out.readLine()) {
                lines.add(line);
            }
            assertEquals(0, process.waitFor());
            return lines;
        } finally {
            process.destroyForcibly();
        }
    }

    @Test
    void shouldOpenDevicesOfTheListAndNothingElse() throws IOException, PosixException, InterruptedException {
        List<String> lines = watch(Set.of("/dev/null"), "2:/dev/null", "02000002:/dev/null", "2:/dev/zero",
            "0:/etc/passwd", "2:/dev/../dev/null", "1102:/dev/null", "0:", "socket", "2:/dev/null");
        assertEquals(9, lines.size(), lines::toString);
        assertTrue(descriptor(lines.get(0)) > 2, lines::toString);
        assertTrue(descriptor(lines.get(1)) > 2, lines::toString);
        assertEquals(-13, descriptor(lines.get(2)), lines::toString);
        assertEquals(-13, descriptor(lines.get(3)), lines::toString);
        assertEquals(-13, descriptor(lines.get(4)), lines::toString); // the watcher compares the name, not its target
        assertEquals(-13, descriptor(lines.get(5)), lines::toString); // O_CREAT | O_TRUNC
        assertEquals(-13, descriptor(lines.get(6)), lines::toString);
        assertEquals(-1, descriptor(lines.get(7)), lines::toString);
        assertTrue(descriptor(lines.get(8)) > 2, lines::toString);
    }

    /** The worker can read these files, which NVIDIA's driver needs for a move, and no others. */
    @Test
    void shouldLendWhatAMoveNeeds() throws Exception {
        List<String> lines = watch(Set.of("/dev/null", "/dev/gone"), "maps:/proc/self/maps", "1:/proc/self/maps",
            "2:/proc/self/maps", "stat:/dev/null", "oldstat:/dev/null", "number:/dev/null", "0:/proc/1/maps",
            "0:/proc/" + ProcessHandle.current().pid() + "/maps", "0:/proc/self/mem", "0:/proc/self/environ",
            "stat:/dev/zero", "stat:/dev/gone", "0:/proc/driver/nvidia/version", "stat:/proc/self/maps",
            "access:/dev/null", "symlink:/dev/char/195:0");
        assertEquals(1, descriptor(lines.get(0)), "its own map, not the watcher's");
        assertEquals(-13, descriptor(lines.get(1)), lines::toString);
        assertEquals(-13, descriptor(lines.get(2)), lines::toString);
        assertEquals(0020666, descriptor(lines.get(3)), lines::toString); // S_IFCHR
        assertEquals(0020666, descriptor(lines.get(4)), lines::toString);
        assertEquals(0x103, descriptor(lines.get(5)), lines::toString); // 1:3
        for (String line : lines.subList(6, 16)) {
            assertEquals(-13, descriptor(line), lines::toString);
        }
    }

    /** The calls of a move that its driver does without, as often as a dozen moves make them. */
    @Test
    void shouldNeitherLogNorCountRefusalsOfMoves() throws Exception {
        List<String> refusals = watchLogged(120, "stat:/usr/bin/nvidia-modprobe", "access:/usr/bin/nvidia-modprobe",
            "stat:/dev/char/195:255", "unlink:/dev/char/195:0", "symlink:/dev/char/195:255",
            "0:/sys/devices/system/memory/block_size_bytes", "access:/dev/null", "0:/proc/devices",
            "access:/sys/module/nvidia/initstate", "access:/sys/module/nvidia_uvm/initstate",
            "stat:/proc/driver/nvidia/gpus/0000:00:06.0/numa_status", "0:/proc/self/task/4711/comm");
        assertEquals(List.of(), refusals);
        assertFalse(abuse.isDone());
        List<String> others = List.of("unlink:/usr/bin/nvidia-modprobe/x", "stat:/dev/char/1:3", "access:/etc/passwd",
            "access:/sys/module/ext4/initstate",
            "0:/proc/self/task/4711/maps", "0:/proc/1/task/4711/comm",
            "0:/proc/driver/nvidia/gpus/0000:00:06.0/numa_status", "symlink:/dev/nvidia0", "0:/dev/char/195:0");
        assertEquals(others.size(), watchLogged(1, others.toArray(new String[0])).size());
    }

    /** A library's name without a folder: LD_LIBRARY_PATH has an empty part. */
    @Test
    void shouldNotLogThatTheLinkerSearchesTheCurrentFolder() throws Exception {
        assertEquals(List.of(), watchLogged(1, "0:libcuda.so.1"));
        assertEquals(2, watchLogged(1, "0:secret", "0:folder/libcuda.so.1").size());
    }

    /** The log lines of a watcher whose process makes the calls so often, with a pause after every 200 calls. */
    private List<String> watchLogged(int times, String... acts) throws Exception {
        List<String> all = new ArrayList<>();
        for (int i = 0; i < times; i++) {
            all.addAll(List.of(acts));
            if ((i + 1) * acts.length % 200 < acts.length) {
                all.add("pause");
            }
        }
        List<String> logged = new CopyOnWriteArrayList<>();
        Logger log = Logger.getLogger(Watcher.class.getName());
        Handler handler = new Handler() {
            @Override
            public void publish(LogRecord line) {
                logged.add(line.getMessage());
            }

            @Override
            public void flush() {
                // nothing is buffered
            }

            @Override
            public void close() {
                // nothing is open
            }
        };
        log.addHandler(handler);
        try {
            watch(Set.of("/dev/null"), all.toArray(new String[0])).stream().filter(line -> !line.startsWith("pause"))
                .forEach(line -> assertEquals(-13, descriptor(line), line));
        } finally {
            log.removeHandler(handler);
        }
        return logged;
    }

    @Test
    void shouldEndWhoAsksForTooMuchThatIsHarmless() throws Exception {
        String[] acts = new String[2 * ABUSE];
        java.util.Arrays.fill(acts, "stat:/dev/char/195:0");
        watch(Set.of(), acts);
        assertTrue(abuse.get(60, TimeUnit.SECONDS).contains(Integer.toString(ABUSE)));
    }

    /** A link may have replaced a device of the list. */
    @Test
    void shouldFollowNoLink(@TempDir Path folder) throws IOException, PosixException, InterruptedException {
        Path link = Files.createSymbolicLink(folder.resolve("device"), Path.of("/dev/null"));
        List<String> lines = watch(Set.of(link.toString(), "/dev/null"), "2:" + link, "2:/dev/null");
        assertEquals(-13, descriptor(lines.get(0)), lines::toString);
        assertTrue(descriptor(lines.get(1)) > 2, lines::toString);
    }

    /** The dynamic linker asks for a folder before it opens a library that another library names. */
    @Test
    void shouldShowOnlyTheFoldersOfLibraries(@TempDir Path folder) throws Exception {
        Path library = Files.writeString(folder.resolve("libfirst.so.1"), "a library");
        Files.writeString(folder.resolve("secret"), "not a library");
        List<String> lines = watch(Set.of(), Map.of(library.toString(), library.toString()), "stat:" + folder,
            "stat:" + folder + '/', "0:" + library, "stat:" + folder + "/glibc-hwcaps/x86-64-v3/",
            "stat:" + folder + "/secret", "stat:" + folder.getParent(), "stat:/etc/passwd", "0:" + folder + "/secret");
        assertEquals(0040555, descriptor(lines.get(0)), lines::toString);
        assertEquals(0040555, descriptor(lines.get(1)), lines::toString);
        assertTrue(descriptor(lines.get(2)) > 2, lines::toString);
        for (String line : lines.subList(3, 8)) {
            assertEquals(-13, descriptor(line), lines::toString);
        }
    }

    @Test
    void shouldLendWorkersOfAVgpuSharedMemoryWithNames() throws Exception {
        files = List.of(shared.of(1));
        String file = "/dev/shm/nccl-a1B2c3";
        List<String> lines = watch(Set.of(), "stat:/dev/shm", "oldstat:/dev/shm/", "2:" + file, "302:" + file,
            "302:" + file, "102:" + file, "write:" + file, "read:" + file, "unlink:" + file, "unlink:" + file,
            "read:" + file, "write:" + file, "unlinkat:" + file, "2:" + file, "0:/dev/urandom", "1:/dev/urandom");
        assertEquals(0040555, descriptor(lines.get(0)), lines::toString);
        assertEquals(0040555, descriptor(lines.get(1)), lines::toString);
        assertEquals(-2, descriptor(lines.get(2)), lines::toString); // it does not exist
        assertTrue(descriptor(lines.get(3)) > 2, lines::toString); // O_CREAT | O_EXCL | O_RDWR
        assertEquals(-17, descriptor(lines.get(4)), lines::toString); // it exists
        assertTrue(descriptor(lines.get(5)) > 2, lines::toString);
        assertEquals(7, descriptor(lines.get(6)), lines::toString);
        assertEquals(7, descriptor(lines.get(7)), lines::toString);
        assertEquals(0, descriptor(lines.get(8)), lines::toString);
        assertEquals(-2, descriptor(lines.get(9)), lines::toString);
        assertEquals(-2, descriptor(lines.get(10)), lines::toString);
        assertEquals(7, descriptor(lines.get(11)), lines::toString);
        assertEquals(0, descriptor(lines.get(12)), lines::toString);
        assertEquals(-2, descriptor(lines.get(13)), lines::toString);
        assertTrue(descriptor(lines.get(14)) > 2, lines::toString);
        assertEquals(-13, descriptor(lines.get(15)), lines::toString); // to write
        assertEquals(0, shared.size());
    }

    @Test
    void shouldLetNoNameOfSharedMemoryLeadElsewhere() throws Exception {
        files = List.of(shared.of(1));
        String file = "/dev/shm/nccl-kept";
        for (String line : watch(Set.of(), "102:/dev/shm/../null", "102:/dev/shm/a/b", "102:/dev/shm/..",
            "102:/dev/shm/",
            "102:/dev/shm", "102:/dev/shm/a.b", "102:/tmp/nccl-kept", "1102:" + file, "100:" + file, "101:" + file,
            "rmdir:" + file, "unlink:/dev/null", "unlinkat:/etc/passwd", "oldstat:/etc/passwd")) {
            assertEquals(-13, descriptor(line), line);
        }
        assertEquals(0, shared.size());
    }

    @Test
    void shouldForgetTheNamesOfAWorkerThatHasEnded() throws Exception {
        files = List.of(shared.of(1));
        String[] acts = java.util.stream.IntStream.range(0, 520).mapToObj(i -> "102:/dev/shm/nccl-" + i)
            .toArray(String[]::new);
        List<String> lines = watch(Set.of(), acts);
        assertTrue(descriptor(lines.get(511)) > 2, lines::toString);
        assertEquals(-28, descriptor(lines.get(512)), lines::toString); // ENOSPC
        for (int i = 0; i < 600 && shared.size() > 0; i++) {
            Thread.sleep(100); // the watcher sees the end after the process has ended
        }
        assertEquals(0, shared.size());
    }

    @Test
    void shouldShareNothingWithWorkersThatDoNotCommunicate() throws Exception {
        for (String line : watch(Set.of(), "102:/dev/shm/nccl-a", "stat:/dev/shm", "unlink:/dev/shm/nccl-a",
            "0:/dev/urandom")) {
            assertEquals(-13, descriptor(line), line);
        }
    }

    /** The calls of NVIDIA's driver 580 for two compilations, as strace shows them. */
    @Test
    void shouldKeepCompiledCodeForTheVgpu(@TempDir Path root) throws Exception {
        String cache = root.resolve("compute-cache").toString();
        CacheFolder vgpu = new CacheFolder(root.resolve("vgpu-a"), 1 << 20);
        String index = cache + "/index", code = cache + "/f/2/0d87eae6ff362a", other = cache + "/0/c/42bbe7d2a14ea5";
        List<String> lines =
            watchCache(cache, vgpu, "2:" + index, "1102:" + index, "get:" + code, "stat:" + cache + "/f",
                "mkdir:" + root, "mkdir:" + cache, "mkdir:" + cache + "/f", "mkdir:" + cache + "/f/2",
                "mkdir:" + cache + "/f/2/", "put:" + code, "2:" + index, "get:" + code, "size:" + code, "put:" + other);
        assertEquals(List.of(-2L, -2L, -2L, -17L, -17L, 0L, 0L, 0L, 7L, 7L, 1L, 7L), Stream.concat(
            Stream.of(lines.get(0)), lines.subList(2, 14).stream().filter(l -> !l.contains(index)))
            .map(WatcherIT::descriptor).toList());
        assertTrue(descriptor(lines.get(1)) > 2, lines::toString); // O_CREAT | O_TRUNC | O_RDWR
        assertTrue(descriptor(lines.get(10)) > 2, lines::toString);
        for (int i = 0; i < 600 && !Files.exists(root.resolve("vgpu-a/0-c-42bbe7d2a14ea5")); i++) {
            Thread.sleep(100); // the watcher sees the end after the process has ended
        }
        // The next worker of the vGPU finds both files, but no index, and may remove one.
        lines = watchCache(cache, vgpu, "2:" + index, "get:" + code, "get:" + other, "unlink:" + other, "get:" + other,
            "unlink:" + other);
        assertEquals(List.of(-2L, 7L, 7L, 0L, -2L, -2L), lines.stream().map(WatcherIT::descriptor).toList());
        lines = watchCache(cache, new CacheFolder(root.resolve("vgpu-b"), 1 << 20), "get:" + code);
        assertEquals(-2, descriptor(lines.getFirst()), "another vGPU's code");
        lines = watchCache(cache, null, "get:" + code, "put:" + code);
        assertEquals(List.of(-2L, -2L), lines.stream().map(WatcherIT::descriptor).toList(), "no vGPU yet");
    }

    @Test
    void shouldLetNoNameOfCompiledCodeLeadElsewhere(@TempDir Path root) throws Exception {
        String cache = root.resolve("compute-cache").toString();
        Files.createDirectories(root.resolve("vgpu-b"));
        Files.writeString(root.resolve("vgpu-b/f-2-0d"), "another vGPU's");
        Files.createSymbolicLink(Files.createDirectories(root.resolve("vgpu-a")).resolve("f-2-0e"), root.resolve(
            "vgpu-b/f-2-0d"));
        for (String line : watchCache(cache, new CacheFolder(root.resolve("vgpu-a"), 1 << 20),
            "0:" + cache + "/../vgpu-b/f-2-0d", "0:" + root + "/vgpu-b/f-2-0d", "0:" + cache + "/f/2/../../index",
            "0:" + cache + "/F/2/0d", "2:" + cache + "/f/2/0d", "102:" + cache + "/f/2/0d", "1:" + cache + "/index",
            "0:" + cache + "/index", "mkdir:" + cache + "/f/2/0d", "mkdir:" + root + "/other", "mkdir:/etc",
            "0:" + cache, "0:" + cache + "/f", "unlinkat:" + root + "/vgpu-b/f-2-0d")) {
            assertEquals(-13, descriptor(line), line);
        }
        assertTrue(descriptor(watchCache(cache, new CacheFolder(root.resolve("vgpu-a"), 1 << 20),
            "0:" + cache + "/f/2/0e").getFirst()) < 0, "a link");
        assertTrue(Files.exists(root.resolve("vgpu-b/f-2-0d")));
    }

    private List<String> watchCache(String root, CacheFolder vgpu, String... acts) throws Exception {
        CacheFiles compiled = new CacheFiles(Path.of(root), 1 << 20);
        if (vgpu != null) {
            compiled.serve(vgpu);
        }
        files = List.of(compiled);
        return watch(Set.of(), acts);
    }

    @Test
    void shouldEndWhoAsksForTooMuch() throws Exception {
        String[] acts = new String[ABUSE];
        java.util.Arrays.fill(acts, "socket");
        assertEquals(ABUSE, watch(Set.of(), acts).size());
        assertTrue(abuse.get(60, TimeUnit.SECONDS).contains(Integer.toString(ABUSE)));
    }

    private static long descriptor(String line) {
        return Long.parseLong(line.substring(line.lastIndexOf(' ') + 1));
    }
}
