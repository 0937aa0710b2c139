package io.hawser.shm.rdma;

import java.lang.foreign.AddressLayout;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.SymbolLookup;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.CodeSource;
import java.util.Optional;

/**
 * The functions of {@code libhws_rdma.so}; {@code hws_rdma.h} describes them. The library lies beside the jar of this
 * class, or where the system property {@code hawser.rdma.library} says.
 */
final class RdmaLibrary {
    static final String PATH = "hawser.rdma.library";
    private static final String NAME = "libhws_rdma.so";

    private static final AddressLayout ADDRESS = ValueLayout.ADDRESS;
    private static final ValueLayout.OfInt INT = ValueLayout.JAVA_INT;
    private static final ValueLayout.OfLong LONG = ValueLayout.JAVA_LONG;
    private static final Linker LINKER = Linker.nativeLinker();

    private static String missing; // why functions cannot be used; set only while the class is initialised
    private static final SymbolLookup LIBRARY = load();

    static final MethodHandle OPEN = find("hws_rdma_open", ADDRESS, ADDRESS, ADDRESS, LONG);
    static final MethodHandle PREPARE = find("hws_rdma_prepare", INT, ADDRESS, ADDRESS, ADDRESS, LONG);
    static final MethodHandle CONNECT = find("hws_rdma_connect", INT, ADDRESS, ADDRESS, ADDRESS, LONG);
    static final MethodHandle MIRROR = find("hws_rdma_mirror", ADDRESS, ADDRESS);
    static final MethodHandle WORDS = find("hws_rdma_words", ADDRESS, ADDRESS);
    static final MethodHandle CAN_SEND = find("hws_rdma_can_send", INT, ADDRESS);
    static final MethodHandle SEND_TAIL = find("hws_rdma_send_tail", INT, ADDRESS, LONG, LONG);
    static final MethodHandle TAKEN = find("hws_rdma_taken", INT, ADDRESS, LONG);
    static final MethodHandle SEND_CHUNK = find("hws_rdma_send_chunk", INT, ADDRESS, INT, INT, INT);
    static final MethodHandle RETURN_CHUNK = find("hws_rdma_return_chunk", INT, ADDRESS, INT, INT, INT, INT);
    static final MethodHandle REGISTER = find("hws_rdma_register", ADDRESS, ADDRESS, ADDRESS, LONG,
        INT, ADDRESS, LONG);
    static final MethodHandle REGISTER_DEVICE = find("hws_rdma_register_device", ADDRESS, ADDRESS, LONG, LONG, INT,
        ADDRESS, LONG);
    static final MethodHandle KEY = find("hws_rdma_key", INT, ADDRESS);
    static final MethodHandle UNREGISTER = handle("hws_rdma_unregister", FunctionDescriptor.ofVoid(ADDRESS, ADDRESS,
        INT));
    static final MethodHandle WRITE = find("hws_rdma_write", INT, ADDRESS, ADDRESS, ADDRESS, INT, LONG, INT, ADDRESS);
    static final MethodHandle READ = find("hws_rdma_read", INT, ADDRESS, ADDRESS, ADDRESS, INT, LONG, INT, ADDRESS);
    static final MethodHandle DONE = find("hws_rdma_done", LONG, ADDRESS);
    static final MethodHandle LEAVE = find("hws_rdma_leave", INT, ADDRESS, INT);
    // A spinning thread calls this all the time, and it never waits. The functions that send can wait for room in the
    // queue pair, and so must not hold up the garbage collector.
    static final MethodHandle PROGRESS = handle("hws_rdma_progress", FunctionDescriptor.of(INT, ADDRESS),
        Linker.Option.critical(false));
    static final MethodHandle CHANNEL = find("hws_rdma_channel", INT, ADDRESS);
    static final MethodHandle ARM = find("hws_rdma_arm", INT, ADDRESS);
    static final MethodHandle AWAKE = findVoid("hws_rdma_awake");
    static final MethodHandle FAULT = find("hws_rdma_fault", ADDRESS, ADDRESS);
    static final MethodHandle DEVICE = find("hws_rdma_device", ADDRESS, ADDRESS);
    static final MethodHandle DESCRIPTOR = find("hws_rdma_device_descriptor", INT, ADDRESS);
    static final MethodHandle CLOSE = findVoid("hws_rdma_close");

    private RdmaLibrary() {}

    /** Why the library cannot be used; null when it can. */
    static String problem() {
        return missing;
    }

    private static SymbolLookup load() {
        Path path = path();
        if (path == null || !Files.exists(path)) {
            missing = "the library of RDMA is missing: " + (path == null ? NAME : path);
            return name -> Optional.empty();
        }
        try {
            return SymbolLookup.libraryLookup(path, Arena.global());
        } catch (IllegalArgumentException e) {
            missing = "the library of RDMA cannot be loaded: " + path;
            return name -> Optional.empty();
        }
    }

    private static Path path() {
        String given = System.getProperty(PATH);
        if (given != null && !given.isBlank()) {
            return Path.of(given).toAbsolutePath();
        }
        CodeSource source = RdmaLibrary.class.getProtectionDomain().getCodeSource();
        Path jar = source == null ? null : Path.of(source.getLocation().getPath()).getParent();
        return jar == null ? null : jar.resolve(NAME);
    }

    private static MethodHandle find(String name, MemoryLayout result, MemoryLayout... arguments) {
        return handle(name, FunctionDescriptor.of(result, arguments));
    }

    private static MethodHandle findVoid(String name) {
        return handle(name, FunctionDescriptor.ofVoid(ADDRESS));
    }

    private static MethodHandle handle(String name, FunctionDescriptor type, Linker.Option... options) {
        return LIBRARY.find(name).map(symbol -> LINKER.downcallHandle(symbol, type, options)).orElseGet(() -> {
            missing = missing == null ? "the library of RDMA lacks a function: " + name : missing;
            return null;
        });
    }
}
