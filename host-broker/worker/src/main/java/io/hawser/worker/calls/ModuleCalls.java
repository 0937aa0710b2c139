package io.hawser.worker.calls;

import io.hawser.cuda.backend.FunctionInfo;
import io.hawser.cuda.backend.GpuBackend;
import io.hawser.cuda.backend.ManagedVariables.Variable;
import io.hawser.cuda.generated.HandleKind;
import io.hawser.cuda.generated.ModuleManualCalls;
import io.hawser.cuda.generated.ModuleReplies;
import io.hawser.worker.session.BlobStore;
import io.hawser.worker.session.Call;
import io.hawser.worker.session.CudaResult;
import io.hawser.worker.session.GuestObjects;
import io.hawser.worker.session.Handle;
import io.hawser.worker.session.LibraryVariables;
import io.hawser.worker.session.LogText;
import io.hawser.worker.session.MemoryQuota;
import io.hawser.worker.session.Session;
import java.io.ByteArrayOutputStream;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.List;

/** Device code: images, their kernels and their variables. */
final class ModuleCalls implements ModuleManualCalls<Call> {
    private static final Logger LOG = System.getLogger(ModuleCalls.class.getName());

    private static final int MAX_LOG_BYTES = 65536; // MAX_LOG_BYTES of the description; bounds a reply
    private static final int MAX_NAMES_BYTES = 65536; // as above
    // hwsImageLoad's optionFlags: the code belongs to no context; how often the guest has loaded it in vain
    private static final int LIBRARY = 1;
    private static final int TRIES_SHIFT = 8;
    private static final int MAX_TRIES = 255;
    private static final int MAX_VARIABLES = 4096; // of a reply of hwsManagedVariables
    private static final int VARIABLE_BYTES = 16; // struct HwsManagedVariable: address, bytes
    private static final int LOCAL_SIZE_BYTES = 3; // CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES
    private static final int PARAM_BYTES = 8; // struct HwsParam: offset, size
    private static final ValueLayout.OfInt I32 = ValueLayout.JAVA_INT.withOrder(ByteOrder.LITTLE_ENDIAN);
    private static final ValueLayout.OfLong I64 = ValueLayout.JAVA_LONG.withOrder(ByteOrder.LITTLE_ENDIAN);

    private final Session session;
    private final GuestObjects objects;
    private final GpuBackend backend;

    ModuleCalls(Session session) {
        this.session = session;
        this.objects = session.objects();
        this.backend = session.backend();
    }

    /**
     * Needs of a kernel's launch.
     *
     * @param bytes length of its packed parameters.
     * @param stackBytes device memory for its local memory, beyond the memory that every context has; mostly 0.
     */
    record Parameters(int bytes, long stackBytes) {}

    @Override
    public void hwsImageLoad(Call call, long modId, long blobId, int optionFlags, int logCapacity, int imageBytes,
        MemorySegment image) {
        StringBuilder log = new StringBuilder();
        boolean library = (optionFlags & LIBRARY) != 0;
        int tries = optionFlags >>> TRIES_SHIFT & MAX_TRIES;
        if (tries != 0 && objects.owningContext() != null) {
            backend.managedVariables().move(tries);
        }
        if (blobId == 0) {
            if (image == null) {
                call.fatal("an image must be inline or staged: blobId=0");
                return;
            }
            load(call, modId, image, library, logCapacity, log);
            return;
        }
        BlobStore blobs = objects.blobs();
        String content = blobs.consume(blobId);
        if (content == null) {
            call.fatal("an image must have been staged: blobId=" + blobId);
            return;
        }
        call.usesImage(content);
        try {
            MemorySegment staged = blobs.bytes(content);
            if (load(call, modId, staged, library, logCapacity, log) == 0) {
                session.images().offer(content, staged.byteSize());
            }
        } finally {
            blobs.release(content);
        }
    }

    /** Loads an image and answers the call; returns the load's CUresult. */
    private int load(Call call, long modId, MemorySegment image, boolean library, int logCapacity, StringBuilder log) {
        MemorySegment out = call.scratch(Long.BYTES);
        int managed = 0;
        Handle context = objects.owningContext();
        MemoryQuota.Charge charge = context == null ? null
            : objects.quota().claim(objects.deviceOf(context), backend.imageBytes(image));
        int result;
        if (context != null && charge == null) {
            result = CudaResult.OUT_OF_MEMORY;
        } else {
            result = library ? backend.loadLibrary(image, out, log) : backend.loadImage(image, out, log);
            result = result != 0 ? result : register(call, modId, out.get(ValueLayout.JAVA_LONG, 0), library, charge);
            boolean hasManaged = result == 0
                && !backend.managedVariables().of(out.get(ValueLayout.JAVA_LONG, 0)).isEmpty();
            managed = hasManaged ? 1 : 0;
        }
        if (result != 0) {
            if (charge != null) {
                charge.giveBack();
            }
            LOG.log(result == CudaResult.OUT_OF_MEMORY ? Level.DEBUG : Level.WARNING,
                "session {0}: an image was not loaded: CUresult={1} bytes={2} log={3}",
                session.id(), result, Long.toString(image.byteSize()), LogText.clean(log.toString()));
        }
        byte[] text = log.toString().getBytes(StandardCharsets.UTF_8);
        int capacity = Math.clamp(Integer.toUnsignedLong(logCapacity), 0, MAX_LOG_BYTES);
        // The reply's status is always 0, so that the log arrives even after a failure.
        ModuleReplies.hwsImageLoad(call.reply(), result, managed,
            MemorySegment.ofArray(Arrays.copyOf(text, Math.min(text.length, capacity))));
        call.finish(0);
        return result;
    }

    /**
     * Charges the length that the backend knows now, and registers the code; CUDA_ERROR_OUT_OF_MEMORY beyond the quota.
     */
    private int register(Call call, long modId, long handle, boolean library, MemoryQuota.Charge charge) {
        long bytes = Math.max(charge == null ? 0 : charge.bytes(), backend.codeBytes(handle));
        if (charge != null && !charge.grow(bytes)) {
            session.deferError(backend.unloadImage(handle));
            return CudaResult.OUT_OF_MEMORY;
        }
        if (library) {
            LibraryVariables variables = new LibraryVariables(bytes);
            if (charge != null) {
                variables.keepCharge(objects.owningContext(), charge);
            }
            objects.register(call, HandleKind.MODULE, modId, handle, null, variables);
        } else {
            call.register(HandleKind.MODULE, modId, handle);
            if (charge != null && !call.isRejected()) {
                objects.keepCharge(objects.handles().find(HandleKind.MODULE, modId), charge);
            }
        }
        return 0;
    }

    /** Claims a library's memory in the current context at its first use there; false beyond the quota. */
    private boolean claimLibrary(Handle module) {
        LibraryVariables library = module.info(LibraryVariables.class);
        Handle context = objects.owningContext();
        if (library == null || context == null || library.isCharged(context)) {
            return true;
        }
        MemoryQuota.Charge charge = objects.quota().claim(objects.deviceOf(context), library.bytes());
        if (charge != null) {
            library.keepCharge(context, charge);
        }
        return charge != null;
    }

    @Override
    public void hwsImageUnload(Call call, long mod, long modId) {
        Handle module = call.lastObject();
        // Its handles are removed at once. Its code is unloaded when work that may still run it is done.
        List<MemoryQuota.Charge> charges = charges(module);
        objects.drop(HandleKind.MODULE, module.id());
        Handle context = module.owner();
        List<Handle> users = context == null
            ? objects.handles().all(HandleKind.CONTEXT).stream().filter(user -> !user.isFailed()).toList()
            : List.of(context);
        unloadAfter(users, () -> {
            if (context == null || objects.isLive(context)) {
                session.deferError(backend.unloadImage(module.nativeHandle()));
            }
            charges.forEach(MemoryQuota.Charge::giveBack);
        });
        call.finish(0);
    }

    private List<MemoryQuota.Charge> charges(Handle module) {
        LibraryVariables library = module.info(LibraryVariables.class);
        MemoryQuota.Charge charge = objects.takeCharge(module);
        return library != null ? library.takeCharges() : charge == null ? List.of() : List.of(charge);
    }

    /** Runs an action when all work issued to these contexts so far is done. */
    private void unloadAfter(List<Handle> users, Runnable unload) {
        int[] running = {1}; // one more for the loop
        Runnable ended = () -> {
            if (--running[0] == 0) {
                session.gates().whenClosed(unload);
            }
        };
        for (Handle user : users) {
            running[0]++;
            int wait = backend.whenContextReached(user.nativeHandle(),
                status -> session.completions().add(ended));
            if (wait != 0) { // a lost context reports nothing
                ended.run();
            }
        }
        ended.run();
    }

    @Override
    public void hwsFunctionGet(Call call, long mod, String name, long functionId) {
        Handle module = call.lastObject();
        FunctionInfo info = new FunctionInfo();
        int result = claimLibrary(module) ? backend.function(module.nativeHandle(), name, info)
            : CudaResult.OUT_OF_MEMORY;
        if (result != 0) {
            call.fail(result);
            return;
        }
        int count = info.paramCount();
        int bytes = 0;
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment params = arena.allocate(Math.max(1, (long) count * PARAM_BYTES), Integer.BYTES);
            for (int i = 0; i < count; i++) {
                params.set(I32, (long) i * PARAM_BYTES, info.paramOffset(i));
                params.set(I32, (long) i * PARAM_BYTES + Integer.BYTES, info.paramSize(i));
                bytes = Math.max(bytes, info.paramOffset(i) + info.paramSize(i));
            }
            MemorySegment attributes = arena.allocate((long) FunctionInfo.ATTRIBUTES * Integer.BYTES, Integer.BYTES);
            for (int i = 0; i < FunctionInfo.ATTRIBUTES; i++) {
                attributes.setAtIndex(I32, i, info.attribute(i));
            }
            ModuleReplies.hwsFunctionGet(call.reply(), count, attributes,
                params.asSlice(0, (long) count * PARAM_BYTES), MemorySegment.ofArray(refusal(info)));
        }
        objects.register(call, HandleKind.FUNCTION, functionId, info.handle(), module,
            new Parameters(bytes, stackBytes(info)));
        call.finish(0);
    }

    private static byte[] refusal(FunctionInfo info) {
        byte[] text = info.refusal().getBytes(StandardCharsets.UTF_8);
        return Arrays.copyOf(text, Math.min(text.length, FunctionInfo.MAX_REFUSAL_BYTES));
    }

    private long stackBytes(FunctionInfo info) {
        Handle context = objects.owningContext();
        return context == null ? 0 : backend.limitBytes(objects.deviceOf(context), GuestObjects.STACK_LIMIT,
            info.attribute(LOCAL_SIZE_BYTES));
    }

    @Override
    public void hwsGlobalGet(Call call, long mod, String name) {
        Handle module = call.lastObject();
        MemorySegment out = call.scratch(2 * Long.BYTES);
        int result = claimLibrary(module) ? backend.global(module.nativeHandle(), name, out) : CudaResult.OUT_OF_MEMORY;
        if (result != 0) {
            call.fail(result);
            return;
        }
        long address = out.get(ValueLayout.JAVA_LONG, 0);
        long bytes = out.get(ValueLayout.JAVA_LONG, Long.BYTES);
        allow(module, address, bytes);
        ModuleReplies.hwsGlobalGet(call.reply(), address, bytes);
        call.finish(0);
    }

    /** Lets the guest copy a variable. */
    private void allow(Handle module, long address, long bytes) {
        if (bytes > 0 && !objects.allocations().contains(address, bytes)) {
            objects.allocations().add(address, bytes, module);
            LibraryVariables library = module.info(LibraryVariables.class);
            if (library != null) {
                library.add(objects.owningContext(), address);
            }
        }
    }

    @Override
    public void hwsManagedVariables(Call call, long mod, int first) {
        Handle module = call.lastObject();
        if (!claimLibrary(module)) {
            call.fail(CudaResult.OUT_OF_MEMORY);
            return;
        }
        List<Variable> all = backend.managedVariables().of(module.nativeHandle());
        List<Variable> some = all.subList(Math.clamp(first, 0, all.size()), Math.clamp(first + (long) MAX_VARIABLES, 0,
            all.size()));
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment variables = arena.allocate(Math.max(1, (long) some.size() * VARIABLE_BYTES), Long.BYTES);
            for (int i = 0; i < some.size(); i++) {
                allow(module, some.get(i).address(), some.get(i).bytes());
                variables.setAtIndex(I64, 2L * i, some.get(i).address());
                variables.setAtIndex(I64, 2L * i + 1, some.get(i).bytes());
            }
            ModuleReplies.hwsManagedVariables(call.reply(), all.size(),
                variables.asSlice(0, (long) some.size() * VARIABLE_BYTES));
        }
        call.finish(0);
    }

    @Override
    public void hwsFunctionNames(Call call, long mod, int first) {
        List<String> names = backend.functionNames(call.lastObject().nativeHandle());
        if (names == null) {
            call.fail(CudaResult.NOT_SUPPORTED);
            return;
        }
        ByteArrayOutputStream text = new ByteArrayOutputStream();
        for (int i = Math.max(first, 0); i < names.size(); i++) {
            byte[] name = names.get(i).getBytes(StandardCharsets.UTF_8);
            if (text.size() + name.length + 1 > MAX_NAMES_BYTES) {
                break;
            }
            text.writeBytes(name);
            text.write(0);
        }
        ModuleReplies.hwsFunctionNames(call.reply(), names.size(), MemorySegment.ofArray(text.toByteArray()));
        call.finish(0);
    }
}
