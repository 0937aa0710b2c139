package io.hawser.interop;

import io.hawser.cuda.generator.c.CEmitters;
import io.hawser.cuda.generator.c.CInteropEmitter;
import io.hawser.cuda.generator.emit.OutputFiles;
import io.hawser.cuda.generator.model.Description;
import java.io.DataInputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;

/** The guest's generated C code as a program under the address and undefined-behaviour sanitizers. */
final class CProgram implements AutoCloseable {
    private static final Path ROOT = Path.of(System.getProperty("hawser.root"));

    private final Process process;
    private final DataInputStream in;
    private final OutputStream out;

    /** C's decoding of a request and encoding of its outputs. */
    record Answer(int result, int opcode, int flags, byte[] captured, byte[] outputs) {
    }

    private CProgram(Process process) {
        this.process = process;
        in = new DataInputStream(process.getInputStream());
        out = process.getOutputStream();
    }

    /** Generates, compiles and starts the program in a folder. */
    static CProgram start(Description description, Path folder) throws Exception {
        OutputFiles files = new OutputFiles(folder, "Interoperability test.");
        CEmitters.emit(description, null, files);
        CInteropEmitter.emit(description, files);
        io.hawser.shm.layout.Main.main(new String[] {"--language", "c", "--out", folder.toString()});
        Path sources = Path.of("src/test/c").toAbsolutePath();
        Path program = folder.resolve("interop");
        List<String> command = new ArrayList<>(List.of("gcc", "-std=gnu11", "-g", "-O1", "-Wall", "-Wextra", "-Werror",
            "-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-I" + folder, "-I" + sources,
            "-I" + ROOT.resolve("shm-transport/c"), "-o", program.toString(),
            sources.resolve("hws_interop.c").toString(), folder.resolve("hws_interop_calls.c").toString()));
        try (Stream<Path> calls = Files.list(folder)) {
            calls.map(Path::toString).filter(name -> name.matches(".*_calls_\\w+\\.c")).forEach(command::add);
        }
        run(command);
        ProcessBuilder builder = new ProcessBuilder(program.toString());
        builder.redirectError(ProcessBuilder.Redirect.INHERIT);
        return new CProgram(builder.start());
    }

    /** Runs the compiler. */
    static void run(List<String> command) throws Exception {
        Process gcc = new ProcessBuilder(command).redirectErrorStream(true).start();
        String output = new String(gcc.getInputStream().readAllBytes());
        if (!gcc.waitFor(120, TimeUnit.SECONDS) || gcc.exitValue() != 0) {
            throw new AssertionError("gcc must succeed: " + command + "\n" + output);
        }
    }

    /** Makes C decode a request, make the call with this reply, and encode the outputs. */
    Answer call(int opcode, byte[] request, byte[] reply) throws IOException {
        ByteBuffer frame = ByteBuffer.allocate(16 + request.length + reply.length).order(ByteOrder.LITTLE_ENDIAN);
        frame.putInt(opcode).putInt(request.length).putInt(reply.length).putInt(0).put(request).put(reply);
        out.write(frame.array());
        out.flush();
        byte[] head = in.readNBytes(24);
        if (head.length < 24) {
            throw new AssertionError("the C program must go on; it wrote above why not");
        }
        ByteBuffer answer = ByteBuffer.wrap(head).order(ByteOrder.LITTLE_ENDIAN);
        byte[] captured = new byte[answer.getInt(12)];
        byte[] outputs = new byte[answer.getInt(16)];
        in.readFully(captured);
        in.readFully(outputs);
        return new Answer(answer.getInt(0), answer.getInt(4), answer.getInt(8), captured, outputs);
    }

    @Override
    public void close() throws Exception {
        out.close();
        if (!process.waitFor(30, TimeUnit.SECONDS)) {
            process.destroyForcibly();
            throw new AssertionError("the C program must end with its input");
        }
        if (process.exitValue() != 0) {
            throw new AssertionError("the C program must end without a finding: exit=" + process.exitValue());
        }
    }
}
