package io.hawser.gpu.software.dnn;

import static io.hawser.cuda.generated.cudnn.cudnnStatus_t.CUDNN_STATUS_EXECUTION_FAILED;
import static io.hawser.cuda.generated.cudnn.cudnnStatus_t.CUDNN_STATUS_NOT_SUPPORTED;
import static io.hawser.cuda.generated.cudnn.cudnnStatus_t.CUDNN_STATUS_SUCCESS;

import io.hawser.cuda.backend.GpuBackend;
import io.hawser.gpu.software.work.AwaitedWork;
import io.hawser.gpu.software.work.HandleStreams;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.OptionalLong;
import java.util.Set;

/** Handles and descriptors of a session, and why it refused a call last. Session thread. */
final class DnnState {
    private static final System.Logger LOG = System.getLogger(DnnState.class.getName());
    private static final float NS_PER_MS = 1e6F;
    private static final int MOST_LOGGED = 256; // a guest chooses what is refused

    private final GpuBackend gpu;
    private final HandleStreams streams = new HandleStreams();
    private final Map<Long, Object> objects = new HashMap<>();
    private final Set<String> logged = new HashSet<>();
    private String lastError = "";
    private long last;

    DnnState(GpuBackend gpu) {
        this.gpu = gpu;
    }

    int createHandle(MemorySegment out) {
        streams.add(out);
        return CUDNN_STATUS_SUCCESS;
    }

    int destroyHandle(long handle) {
        streams.remove(handle);
        return CUDNN_STATUS_SUCCESS;
    }

    int setStream(long handle, long stream) {
        streams.set(handle, stream);
        return CUDNN_STATUS_SUCCESS;
    }

    /** Keeps a descriptor; {@code out} receives its number. */
    int add(Object object, MemorySegment out) {
        objects.put(++last, object);
        out.set(ValueLayout.JAVA_LONG, 0, last);
        return CUDNN_STATUS_SUCCESS;
    }

    void remove(long descriptor) {
        objects.remove(descriptor);
    }

    /** The descriptor with a number. */
    <T> T find(long descriptor, Class<T> type) throws Refusal {
        Object found = objects.get(descriptor);
        Refusal.require(type.isInstance(found), "a descriptor is missing, or of another kind");
        return type.cast(found);
    }

    /** The descriptor that an argument names. */
    <T> T find(MemorySegment argument, Class<T> type) throws Refusal {
        return find(argument.address(), type);
    }

    /** A tensor that a call reads. */
    Tensor input(MemorySegment descriptor, long address) throws Refusal {
        Shape shape = find(descriptor, Shape.class);
        Refusal.support(shape.isFloat(), "tensors in float");
        Refusal.require(address != 0, "a tensor has an address");
        return Tensor.at(shape, address);
    }

    /** A tensor that a call writes. */
    Tensor output(MemorySegment descriptor, long address) throws Refusal {
        Tensor tensor = input(descriptor, address);
        Refusal.support(tensor.shape().isDisjoint(), "outputs whose elements do not overlap");
        return tensor;
    }

    /** A tensor that a call writes if the program has given an address; otherwise null. */
    Tensor optional(MemorySegment descriptor, long address) throws Refusal {
        return address == 0 ? null : output(descriptor, address);
    }

    /** A factor, which lies on the host. */
    static double number(MemorySegment argument) {
        return argument.get(ValueLayout.JAVA_FLOAT_UNALIGNED, 0);
    }

    /** Checks the arguments of a call. The work that it returns runs in stream order. */
    interface Call {
        Runnable prepare() throws Refusal;
    }

    /** Issues a call's work. */
    int issue(String name, long handle, Call call) {
        try {
            return gpu.hostFunction(streams.of(handle), call.prepare()) == 0 ? CUDNN_STATUS_SUCCESS
                : CUDNN_STATUS_EXECUTION_FAILED;
        } catch (Refusal e) {
            return refuse(name, e);
        }
    }

    /** Receives the time of work in milliseconds. */
    interface Measured {
        void receive(float milliseconds) throws Refusal;
    }

    /** Issues a call's work, waits for it, and tells its time. */
    int measure(String name, long handle, Call call, Measured measured) {
        try {
            Runnable work = call.prepare();
            OptionalLong nanoseconds = AwaitedWork.run(gpu, streams.of(handle), "cuDNN", () -> {
                long begin = System.nanoTime();
                work.run();
                return System.nanoTime() - begin;
            });
            if (nanoseconds.isEmpty()) {
                return CUDNN_STATUS_EXECUTION_FAILED;
            }
            measured.receive(nanoseconds.getAsLong() / NS_PER_MS);
            return CUDNN_STATUS_SUCCESS;
        } catch (Refusal e) {
            return refuse(name, e);
        }
    }

    /** Answers at once. */
    interface Question {
        void answer() throws Refusal;
    }

    /** Answers a question, or returns why there is no answer. */
    int answer(String name, Question question) {
        try {
            question.answer();
            return CUDNN_STATUS_SUCCESS;
        } catch (Refusal e) {
            return refuse(name, e);
        }
    }

    /** Keeps why a call was refused, and logs once what the software GPU does not serve. */
    int refuse(String name, Refusal refusal) {
        lastError = name + ": " + refusal.getMessage();
        if (refusal.status() == CUDNN_STATUS_NOT_SUPPORTED && logged.size() < MOST_LOGGED && logged.add(lastError)) {
            LOG.log(System.Logger.Level.INFO, "cuDNN: {0}", lastError);
        }
        return refusal.status();
    }

    /** Copies the last refusal's text, which ends with 0. */
    void lastError(MemorySegment message) {
        byte[] text = lastError.getBytes(StandardCharsets.UTF_8);
        byte[] given = Arrays.copyOf(text, (int) Math.min(text.length + 1L, message.byteSize()));
        given[given.length - 1] = 0;
        MemorySegment.copy(given, 0, message, ValueLayout.JAVA_BYTE, 0, given.length);
    }
}
