package io.hawser.worker.calls;

import static io.hawser.cuda.generated.curand.curandStatus_t.CURAND_STATUS_ALLOCATION_FAILED;
import static io.hawser.cuda.generated.curand.curandStatus_t.CURAND_STATUS_INITIALIZATION_FAILED;
import static io.hawser.cuda.generated.curand.curandStatus_t.CURAND_STATUS_INTERNAL_ERROR;
import static io.hawser.cuda.generated.curand.curandStatus_t.CURAND_STATUS_NOT_INITIALIZED;
import static io.hawser.cuda.generated.curand.curandStatus_t.CURAND_STATUS_OUT_OF_RANGE;
import static io.hawser.cuda.generated.curand.curandStatus_t.CURAND_STATUS_SUCCESS;
import static io.hawser.cuda.generated.curand.curandStatus_t.CURAND_STATUS_TYPE_ERROR;

import io.hawser.cuda.backend.CurandBackend;
import io.hawser.cuda.backend.GpuBackend;
import io.hawser.cuda.backend.MathProvider;
import io.hawser.cuda.generated.HandleKind;
import io.hawser.cuda.generated.curand.CurandDispatcher;
import io.hawser.cuda.generated.curand.CurandDriver;
import io.hawser.cuda.generated.curand.GenerateManualCalls;
import io.hawser.cuda.generated.curand.GenerateReplies;
import io.hawser.cuda.generated.curand.GeneratorManualCalls;
import io.hawser.cuda.generated.curand.HwsRandFunction;
import io.hawser.cuda.generated.curand.HwsRandSetting;
import io.hawser.cuda.generated.curand.HwsRandTable;
import io.hawser.cuda.generated.curand.HwsRandWork;
import io.hawser.cuda.generated.curand.TableManualCalls;
import io.hawser.cuda.generated.curand.TableReplies;
import io.hawser.cuda.generated.curand.VersionManualCalls;
import io.hawser.cuda.generated.curand.VersionReplies;
import io.hawser.cuda.generated.curand.curandDirectionVectors32_t;
import io.hawser.cuda.generated.curand.curandDirectionVectors64_t;
import io.hawser.worker.session.Call;
import io.hawser.worker.session.GuestObjects;
import io.hawser.worker.session.Handle;
import io.hawser.worker.session.MemoryQuota;
import io.hawser.worker.session.Session;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.HashMap;
import java.util.Map;

/**
 * cuRAND. The first call opens the machine's library. A generator on the host fills memory of the worker, which the
 * guest then reads in parts. Session thread.
 */
final class CurandCalls implements LibraryCalls, GeneratorManualCalls<Call>, GenerateManualCalls<Call>,
    TableManualCalls<Call>, VersionManualCalls<Call> {
    /** Live generators of a session: those on the host take memory of the library that nothing counts. */
    static final int MAX_GENERATORS = 4096;
    static final int MAX_DISTRIBUTIONS = 4096; // the same of distributions
    /** Bytes of a part of numbers or of a table: the guest's buffer for the reply. */
    static final int MAX_PART_BYTES = 1 << 16;
    /** Bytes of numbers on the host, guest-chosen: they take the worker's own memory. */
    static final long MAX_HOST_BYTES = 1L << 30;
    private static final int DIMENSIONS = 20_000; // documented for each set of direction vectors and constants
    private static final long ALIGNMENT = 16;

    private final GuestObjects objects;
    private final GpuBackend backend;
    private final Map<Long, MemoryQuota.Charge> distributions = new HashMap<>(); // by the address
    private CurandBackend curand; // null while the library has not been opened, or is missing
    private CurandDispatcher<Call> dispatcher;
    private int generators; // also those whose context has ended, which the library still has

    /** A generator that the library has made. */
    private static final class Generator {
        private final boolean isHost;
        private MemorySegment numbers = MemorySegment.NULL; // of the last call on the host
        private long stream; // that the library has

        Generator(boolean isHost) {
            this.isHost = isHost;
        }
    }

    CurandCalls(Session session) {
        this.objects = session.objects();
        this.backend = session.backend();
    }

    @Override
    public void dispatch(int opcode, Call call) {
        if (dispatcher == null) {
            curand = MathProviders.open(backend, MathProvider::curand);
            dispatcher = new CurandDispatcher<>(new CurandDriver() {}, this, this, this, this);
        }
        dispatcher.dispatch(call);
    }

    @Override
    public void hwsRandVersion(Call call) {
        MemorySegment version = call.scratch(Integer.BYTES);
        int status = curand == null ? CURAND_STATUS_INTERNAL_ERROR : curand.version(version);
        if (status == CURAND_STATUS_SUCCESS) {
            VersionReplies.hwsRandVersion(call.reply(), version.get(ValueLayout.JAVA_INT, 0));
        }
        call.finish(status);
    }

    @Override
    public void hwsRandCreate(Call call, long id, int type, int isHost) {
        // The guest waits for the result, so it never uses the id of a generator that was not made.
        call.finish(create(call, id, type, isHost != 0));
    }

    private int create(Call call, long id, int type, boolean isHost) {
        Handle context = objects.owningContext();
        if (curand == null || context == null) {
            return curand == null ? CURAND_STATUS_INTERNAL_ERROR : CURAND_STATUS_INITIALIZATION_FAILED;
        }
        MemoryQuota.Charge charge = generators >= MAX_GENERATORS ? null
            : objects.quota().claim(objects.deviceOf(context), curand.generatorBytes(type, isHost));
        if (charge == null) {
            return CURAND_STATUS_ALLOCATION_FAILED;
        }
        MemorySegment made = call.scratch(Long.BYTES);
        int status = curand.create(type, isHost, made);
        if (status != CURAND_STATUS_SUCCESS) {
            charge.giveBack();
            return status;
        }
        long generator = made.get(ValueLayout.JAVA_LONG, 0);
        objects.register(call, HandleKind.CURAND, id, generator, context, new Generator(isHost));
        if (call.isRejected()) {
            charge.giveBack();
            return curand.destroy(generator);
        }
        generators++;
        objects.keepCharge(objects.handles().find(HandleKind.CURAND, id), charge);
        return CURAND_STATUS_SUCCESS;
    }

    @Override
    public void hwsRandDestroy(Call call, long generator, long id) {
        Handle handle = objects.handles().find(HandleKind.CURAND, id);
        int status = objects.enter(handle.owner()); // the state lies in its memory
        if (status == 0) {
            status = curand.destroy(generator);
        }
        generators--;
        call.drop(HandleKind.CURAND, id);
        call.finish(status);
    }

    @Override
    public void hwsRandSet(Call call, long generator, int setting, long value) {
        call.finish(setting < 0 || setting >= HwsRandSetting.HWS_RAND_SETTINGS ? CURAND_STATUS_OUT_OF_RANGE
            : curand.set(generator, setting, value));
    }

    /** Bytes of a number of a function; 0 for no number, -1 for an unknown function. */
    private static int elementBytes(int function) {
        return switch (function) {
            case HwsRandFunction.HWS_RAND_SEEDS -> 0;
            case HwsRandFunction.HWS_RAND_BITS, HwsRandFunction.HWS_RAND_UNIFORM, HwsRandFunction.HWS_RAND_NORMAL,
                HwsRandFunction.HWS_RAND_LOG_NORMAL, HwsRandFunction.HWS_RAND_POISSON,
                HwsRandFunction.HWS_RAND_POISSON_METHOD -> Float.BYTES;
            case HwsRandFunction.HWS_RAND_BITS64, HwsRandFunction.HWS_RAND_UNIFORM_DOUBLE,
                HwsRandFunction.HWS_RAND_NORMAL_DOUBLE, HwsRandFunction.HWS_RAND_LOG_NORMAL_DOUBLE -> Double.BYTES;
            default -> -1;
        };
    }

    /** Bytes that the numbers of a call fill; -1 when there is no such call. */
    private static long outputBytes(MemorySegment work) {
        int element = elementBytes(work.get(ValueLayout.JAVA_INT_UNALIGNED, HwsRandWork.FUNCTION_OFFSET));
        long count = number(work, HwsRandWork.COUNT_OFFSET);
        return element < 0 || count < 0 || count > Long.MAX_VALUE / Double.BYTES ? -1 : count * element;
    }

    @Override
    public void hwsRandGenerate(Call call, MemorySegment work, long output) {
        long generator = call.handle(HandleKind.CURAND, number(work, HwsRandWork.GENERATOR_OFFSET));
        Handle handle = call.lastObject();
        long stream = call.handle(HandleKind.STREAM, number(work, HwsRandWork.STREAM_OFFSET));
        if (call.isRejected()) {
            return;
        }
        Generator state = handle.info(Generator.class);
        long bytes = outputBytes(work);
        if (state.isHost || bytes < 0) {
            call.fail(state.isHost ? CURAND_STATUS_TYPE_ERROR : CURAND_STATUS_OUT_OF_RANGE);
            return;
        }
        if (bytes > 0 && !call.checkDevice(output, bytes)) {
            return;
        }
        int status = handle.owner() != objects.owningContext() ? CURAND_STATUS_INITIALIZATION_FAILED
            : apply(generator, work);
        if (status == CURAND_STATUS_SUCCESS && stream != state.stream) {
            status = curand.setStream(generator, stream);
            state.stream = stream;
        }
        if (status != CURAND_STATUS_SUCCESS) {
            call.fail(status);
            return;
        }
        call.countKernel();
        call.finish(curand.generate(generator, work, output));
    }

    /** Gives the library the settings that the program has changed since the last call. */
    private int apply(long generator, MemorySegment work) {
        int changed = work.get(ValueLayout.JAVA_INT_UNALIGNED, HwsRandWork.CHANGED_OFFSET);
        for (int setting = 0; setting < HwsRandSetting.HWS_RAND_SETTINGS; setting++) {
            if ((changed >>> setting & 1) != 0) {
                int status = curand.set(generator, setting,
                    number(work, HwsRandWork.SETTINGS_OFFSET + (long) Long.BYTES * setting));
                if (status != CURAND_STATUS_SUCCESS) {
                    return status;
                }
            }
        }
        return CURAND_STATUS_SUCCESS;
    }

    @Override
    public void hwsRandGenerateHost(Call call, MemorySegment work) {
        long generator = call.handle(HandleKind.CURAND, number(work, HwsRandWork.GENERATOR_OFFSET));
        if (call.isRejected()) {
            return;
        }
        Generator state = call.lastObject().info(Generator.class);
        long bytes = outputBytes(work);
        if (!state.isHost || bytes < 0 || bytes > MAX_HOST_BYTES) {
            call.finish(!state.isHost ? CURAND_STATUS_TYPE_ERROR
                : bytes < 0 ? CURAND_STATUS_OUT_OF_RANGE : CURAND_STATUS_ALLOCATION_FAILED);
            return;
        }
        if (bytes != state.numbers.byteSize()) {
            state.numbers = Arena.ofAuto().allocate(bytes, ALIGNMENT);
        }
        int status = apply(generator, work);
        call.finish(status != CURAND_STATUS_SUCCESS ? status
            : curand.generate(generator, work, state.numbers.address()));
    }

    /** Whether a part lies in a table of {@code bytes} bytes and in a reply. */
    private static boolean isPart(long offset, long partBytes, long bytes) {
        return offset >= 0 && partBytes >= 0 && partBytes <= MAX_PART_BYTES && offset <= bytes - partBytes;
    }

    @Override
    public void hwsRandRead(Call call, long generator, long offset, long byteCount) {
        Generator state = call.lastObject().info(Generator.class);
        if (!isPart(offset, byteCount, state.numbers.byteSize())) {
            call.finish(CURAND_STATUS_OUT_OF_RANGE);
            return;
        }
        GenerateReplies.hwsRandRead(call.reply(), state.numbers.asSlice(offset, byteCount));
        if (offset + byteCount == state.numbers.byteSize()) {
            state.numbers = MemorySegment.NULL; // the guest reads in order
        }
        call.finish(CURAND_STATUS_SUCCESS);
    }

    private static long tableBytes(int table) {
        return switch (table) {
            case HwsRandTable.HWS_RAND_DIRECTIONS32 -> (long) DIMENSIONS * curandDirectionVectors32_t.BYTES;
            case HwsRandTable.HWS_RAND_DIRECTIONS64 -> (long) DIMENSIONS * curandDirectionVectors64_t.BYTES;
            case HwsRandTable.HWS_RAND_CONSTANTS32 -> (long) DIMENSIONS * Integer.BYTES;
            case HwsRandTable.HWS_RAND_CONSTANTS64 -> (long) DIMENSIONS * Long.BYTES;
            default -> -1;
        };
    }

    @Override
    public void hwsRandTablePart(Call call, int table, int set, long offset, long byteCount) {
        long bytes = tableBytes(table);
        MemorySegment address = call.scratch(Long.BYTES);
        int status = curand == null ? CURAND_STATUS_INTERNAL_ERROR
            : bytes < 0 || !isPart(offset, byteCount, bytes) ? CURAND_STATUS_OUT_OF_RANGE
            : curand.table(table, set, address);
        if (status == CURAND_STATUS_SUCCESS) {
            // SAFETY: the library's tables have the documented number of dimensions; isPart() has checked the part.
            TableReplies.hwsRandTablePart(call.reply(),
                MemorySegment.ofAddress(address.get(ValueLayout.JAVA_LONG, 0) + offset).reinterpret(byteCount));
        }
        call.finish(status);
    }

    @Override
    public void hwsRandMakeDistribution(Call call, double lambda) {
        MemorySegment address = call.scratch(Long.BYTES);
        int status = makeDistribution(lambda, address);
        if (status == CURAND_STATUS_SUCCESS) {
            TableReplies.hwsRandMakeDistribution(call.reply(), address.get(ValueLayout.JAVA_LONG, 0));
        }
        call.finish(status);
    }

    private int makeDistribution(double lambda, MemorySegment address) {
        Handle context = objects.owningContext();
        if (curand == null || context == null) {
            return curand == null ? CURAND_STATUS_INTERNAL_ERROR : CURAND_STATUS_INITIALIZATION_FAILED;
        }
        MemoryQuota.Charge charge = distributions.size() >= MAX_DISTRIBUTIONS ? null
            : objects.quota().claim(objects.deviceOf(context), curand.distributionBytes());
        if (charge == null) {
            return CURAND_STATUS_ALLOCATION_FAILED;
        }
        int status = curand.makeDistribution(lambda, address);
        if (status == CURAND_STATUS_SUCCESS) {
            distributions.put(address.get(ValueLayout.JAVA_LONG, 0), charge);
        } else {
            charge.giveBack();
        }
        return status;
    }

    @Override
    public void hwsRandDropDistribution(Call call, long address) {
        MemoryQuota.Charge charge = distributions.remove(address);
        if (charge == null) {
            call.finish(CURAND_STATUS_NOT_INITIALIZED);
            return;
        }
        int status = curand.dropDistribution(address);
        charge.giveBack();
        call.finish(status);
    }

    private static long number(MemorySegment content, long offset) {
        return content.get(ValueLayout.JAVA_LONG_UNALIGNED, offset);
    }
}
