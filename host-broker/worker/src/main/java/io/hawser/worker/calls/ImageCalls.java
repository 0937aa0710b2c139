package io.hawser.worker.calls;

import io.hawser.cuda.backend.FunctionInfo;
import io.hawser.cuda.backend.GpuBackend;
import io.hawser.cuda.generated.HandleKind;
import io.hawser.cuda.generated.WireReplies;
import io.hawser.worker.session.BlobStore;
import io.hawser.worker.session.Call;
import io.hawser.worker.session.CudaResult;
import io.hawser.worker.session.GuestObjects;
import io.hawser.worker.session.Handle;
import io.hawser.worker.session.LibraryVariables;
import io.hawser.worker.session.LogText;
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

/** Device code: images, their kernels and variables. */
final class ImageCalls {
    private static final Logger LOG = System.getLogger(ImageCalls.class.getName());

    private static final int MAX_LOG_BYTES = 65536; // of the description; sizes a reply
    private static final int MAX_NAMES_BYTES = 65536; // likewise
    private static final int LIBRARY = 1; // of hwsImageLoad's optionFlags: the code belongs to no context
    private static final int PARAM_BYTES = 8; // struct HwsParam: offset, size
    private static final ValueLayout.OfInt I32 = ValueLayout.JAVA_INT.withOrder(ByteOrder.LITTLE_ENDIAN);

    private final Session session;
    private final GuestObjects objects;
    private final GpuBackend backend;

    ImageCalls(Session session) {
        this.session = session;
        this.objects = session.objects();
        this.backend = session.backend();
    }

    /**
     * What a launch must bring for a kernel.
     *
     * @param bytes length of its packed parameters.
     */
    record Parameters(int bytes) { }

    void hwsImageLoad(Call call, long mod, long blobId, int optionFlags, int logCapacity, MemorySegment inline) {
        StringBuilder log = new StringBuilder();
        boolean library = (optionFlags & LIBRARY) != 0;
        if (blobId == 0) {
            if (inline == null) {
                call.fatal("an image is inline or staged: blobId=0");
                return;
            }
            load(call, mod, inline, library, logCapacity, log);
            return;
        }
        BlobStore blobs = objects.blobs();
        String content = blobs.consume(blobId);
        if (content == null) {
            call.fatal("an image must have been staged: blobId=" + blobId);
            return;
        }
        try {
            load(call, mod, blobs.bytes(content), library, logCapacity, log);
        } finally {
            blobs.release(content);
        }
    }

    private void load(Call call, long mod, MemorySegment image, boolean library, int logCapacity,
            StringBuilder log) {
        MemorySegment out = call.scratch(Long.BYTES);
        int result = library ? backend.loadLibrary(image, out, log) : backend.loadImage(image, out, log);
        if (result == 0) {
            long loaded = out.get(ValueLayout.JAVA_LONG, 0);
            if (library) {
                objects.register(call, HandleKind.MODULE, mod, loaded, null, new LibraryVariables());
            } else {
                call.register(HandleKind.MODULE, mod, loaded);
            }
        } else {
            LOG.log(Level.WARNING, "session {0}: an image was not loaded: CUresult={1} bytes={2} log={3}",
                session.id(), result, Long.toString(image.byteSize()), LogText.clean(log.toString()));
        }
        byte[] text = log.toString().getBytes(StandardCharsets.UTF_8);
        int capacity = Math.clamp(Integer.toUnsignedLong(logCapacity), 0, MAX_LOG_BYTES);
        // The status is 0 whatever happened, so that the log arrives.
        WireReplies.hwsImageLoad(call.reply(), result,
            MemorySegment.ofArray(Arrays.copyOf(text, Math.min(text.length, capacity))));
        call.finish(0);
    }

    void hwsImageUnload(Call call) {
        Handle module = call.lastObject();
        // Its names go at once, its code when work that may still run it is done.
        objects.drop(HandleKind.MODULE, module.id());
        Handle context = module.owner();
        List<Handle> users = context == null
            ? objects.handles().all(HandleKind.CONTEXT).stream().filter(user -> !user.isFailed()).toList()
            : List.of(context);
        unloadAfter(users, () -> {
            if (context == null || objects.isLive(context)) {
                session.deferError(backend.unloadImage(module.nativeHandle()));
            }
        });
        call.finish(0);
    }

    /** Runs when all work of these contexts is done that has been issued so far. */
    private void unloadAfter(List<Handle> users, Runnable unload) {
        int[] running = {1}; // and one for the loop
        Runnable ended = () -> {
            if (--running[0] == 0) {
                session.gates().whenClosed(unload);
            }
        };
        for (Handle user : users) {
            running[0]++;
            int wait = backend.whenContextReached(user.nativeHandle(),
                status -> session.completions().add(ended));
            if (wait != 0) { // a lost context does not wait
                ended.run();
            }
        }
        ended.run();
    }

    void hwsFunctionGet(Call call, String name, long function) {
        Handle module = call.lastObject();
        FunctionInfo info = new FunctionInfo();
        int result = backend.function(module.nativeHandle(), name, info);
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
            WireReplies.hwsFunctionGet(call.reply(), count, attributes, params.asSlice(0, (long) count * PARAM_BYTES));
        }
        objects.register(call, HandleKind.FUNCTION, function, info.handle(), module, new Parameters(bytes));
        call.finish(0);
    }

    void hwsGlobalGet(Call call, String name) {
        Handle module = call.lastObject();
        MemorySegment out = call.scratch(2 * Long.BYTES);
        int result = backend.global(module.nativeHandle(), name, out);
        if (result != 0) {
            call.fail(result);
            return;
        }
        long address = out.get(ValueLayout.JAVA_LONG, 0);
        long bytes = out.get(ValueLayout.JAVA_LONG, Long.BYTES);
        if (bytes > 0 && !objects.allocations().contains(address, bytes)) {
            objects.allocations().add(address, bytes, module);
            LibraryVariables library = module.info(LibraryVariables.class);
            if (library != null) {
                library.add(objects.currentContext(), address);
            }
        }
        WireReplies.hwsGlobalGet(call.reply(), address, bytes);
        call.finish(0);
    }

    void hwsFunctionNames(Call call, int first) {
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
        WireReplies.hwsFunctionNames(call.reply(), names.size(), MemorySegment.ofArray(text.toByteArray()));
        call.finish(0);
    }
}
