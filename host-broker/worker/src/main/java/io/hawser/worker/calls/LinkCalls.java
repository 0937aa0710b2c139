package io.hawser.worker.calls;

import io.hawser.cuda.backend.DeviceLinker;
import io.hawser.cuda.generated.LinkManualCalls;
import io.hawser.cuda.generated.LinkReplies;
import io.hawser.worker.session.BlobStore;
import io.hawser.worker.session.Call;
import io.hawser.worker.session.CudaResult;
import io.hawser.worker.session.LogText;
import io.hawser.worker.session.Session;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;

/** Links device code. The guest's inputs and the linked image stay until the guest ends the link. Session thread. */
final class LinkCalls implements LinkManualCalls<Call> {
    private static final Logger LOG = System.getLogger(LinkCalls.class.getName());

    /** Links that a guest may have at once; each costs memory. */
    private static final int MAX_LINKS = 64;
    /** Inputs of all links; each costs an entry here and in the linker. */
    private static final int MAX_INPUTS = 4096;
    /** Bytes of all inputs and images, whose lengths the guest chooses. */
    private static final long MAX_BYTES = 512L << 20;
    private static final int MAX_LOG_BYTES = 65536; // MAX_LOG_BYTES of the description; bounds a reply
    private static final int MAX_READ_BYTES = 524288; // as above
    private static final int OPTION_BYTES = 16; // of the description: u32 option, u32 0, u64 value
    private static final int LAST_INPUT_TYPE = 5; // CU_JIT_INPUT_NVVM
    /**
     * Options whose values are numbers, by CUjit_option: registers, threads per block, optimisation, target from the
     * context, target, fallback, debug information, verbose log, line information, cache mode, link-time optimisation,
     * ftz, prec-div, prec-sqrt, fma, position-independent code, blocks per multiprocessor, maximum threads per block,
     * override of directives, split compilation. Other options hold the guest's pointers.
     */
    private static final Set<Integer> NUMBERS =
        Set.of(0, 1, 7, 8, 9, 10, 11, 12, 13, 14, 20, 21, 22, 23, 24, 30, 31, 32, 33, 34);

    private static final class LinkJob {
        final Arena arena = Arena.ofShared();
        final List<DeviceLinker.Input> inputs = new ArrayList<>();
        final Map<String, Long> staged = new HashMap<>(); // lengths of the inputs that were staged, by digest
        MemorySegment image;
        long bytes;
    }

    private final Session session;
    private final DeviceLinker linker;
    private final Map<Long, LinkJob> links = new HashMap<>();
    private long totalBytes;
    private int totalInputs;

    LinkCalls(Session session) {
        this.session = session;
        this.linker = session.backend().linker();
    }

    @Override
    public void hwsLinkAdd(Call call, long linkId, long blobId, int type, String name, int optionBytes,
        MemorySegment options, int dataBytes, MemorySegment data) {
        List<DeviceLinker.Option> own = options(call, options);
        if (own == null) {
            return;
        }
        if (type < 0 || type > LAST_INPUT_TYPE || (blobId == 0) == (data == null)) {
            call.fatal("an input must have a type of CUDA and be inline or staged: type=" + type + " blobId="
                + blobId);
            return;
        }
        if (linker == null) {
            call.fail(CudaResult.NOT_SUPPORTED);
            return;
        }
        if (data != null) {
            add(call, linkId, type, name, own, data);
            return;
        }
        BlobStore blobs = session.objects().blobs();
        String content = blobs.consume(blobId);
        if (content == null) {
            call.fatal("an input must have been staged: blobId=" + blobId);
            return;
        }
        try {
            LinkJob link = add(call, linkId, type, name, own, blobs.bytes(content));
            if (link != null) {
                link.staged.put(content, blobs.bytes(content).byteSize());
            }
        } finally {
            blobs.release(content);
        }
    }

    /** Adds an input and answers the call; returns the link, or null when it does not take the input. */
    private LinkJob add(Call call, long linkId, int type, String name, List<DeviceLinker.Option> options,
        MemorySegment data) {
        LinkJob link = links.get(linkId);
        if (link != null && link.image != null) {
            call.fatal("a complete link must get no more inputs: linkId=" + linkId);
            return null;
        }
        if (link == null && links.size() >= MAX_LINKS || totalInputs >= MAX_INPUTS
            || data.byteSize() > MAX_BYTES - totalBytes) {
            call.fail(CudaResult.OUT_OF_MEMORY);
            return null;
        }
        if (link == null) {
            link = new LinkJob();
            links.put(linkId, link);
        }
        // The copy is followed by a NUL, which linkers of text need.
        MemorySegment copy = link.arena.allocate(data.byteSize() + 1, Long.BYTES).copyFrom(data)
            .asSlice(0, data.byteSize());
        link.inputs.add(new DeviceLinker.Input(type, copy, name, options));
        hold(link, data.byteSize());
        totalInputs++;
        call.finish(0);
        return link;
    }

    private void hold(LinkJob link, long bytes) {
        link.bytes += bytes;
        totalBytes += bytes;
    }

    /** The options of a record; ends the session and returns null for invalid ones. */
    private static List<DeviceLinker.Option> options(Call call, MemorySegment bytes) {
        if (bytes.byteSize() % OPTION_BYTES != 0) {
            call.fatal("options must be complete: bytes=" + bytes.byteSize());
            return null;
        }
        List<DeviceLinker.Option> options = new ArrayList<>();
        for (long at = 0; at < bytes.byteSize(); at += OPTION_BYTES) {
            int option = bytes.get(ValueLayout.JAVA_INT_UNALIGNED, at);
            if (!NUMBERS.contains(option)) {
                call.fatal("an option's value must be a number: option=" + option);
                return null;
            }
            options.add(new DeviceLinker.Option(option, bytes.get(ValueLayout.JAVA_LONG_UNALIGNED, at + 8)));
        }
        return options;
    }

    @Override
    public void hwsLinkComplete(Call call, long linkId, int optionBytes, MemorySegment options,
        int logCapacity) {
        List<DeviceLinker.Option> own = options(call, options);
        LinkJob link = links.get(linkId);
        if (own == null) {
            return;
        }
        if (link == null || link.image != null) {
            call.fatal("a link must have inputs and be completed once: linkId=" + linkId);
            return;
        }
        StringBuilder log = new StringBuilder();
        int result = linker.link(link.inputs, own, log, image -> link.image = image.byteSize() > MAX_BYTES - totalBytes
            ? null : link.arena.allocate(Math.max(1, image.byteSize()), Long.BYTES).asSlice(0, image.byteSize())
                .copyFrom(image));
        if (result == 0 && link.image == null) {
            result = CudaResult.OUT_OF_MEMORY;
        }
        if (result == 0) {
            hold(link, link.image.byteSize());
            link.staged.forEach(session.images()::offer);
        } else {
            LOG.log(Level.INFO, "session {0}: {1} inputs were not linked: CUresult={2} log={3}", session.id(),
                link.inputs.size(), result, LogText.clean(log.toString()));
        }
        byte[] text = log.toString().getBytes(StandardCharsets.UTF_8);
        int capacity = Math.clamp(Integer.toUnsignedLong(logCapacity), 0, MAX_LOG_BYTES);
        LinkReplies.hwsLinkComplete(call.reply(), result, result == 0 ? link.image.byteSize() : 0,
            MemorySegment.ofArray(Arrays.copyOf(text, Math.min(text.length, capacity))));
        call.finish(0);
    }

    @Override
    public void hwsLinkRead(Call call, long linkId, long offset, int byteCount) {
        LinkJob link = links.get(linkId);
        if (link == null || link.image == null || offset < 0 || offset > link.image.byteSize()) {
            call.fatal("a link must be complete and be read inside its image: linkId=" + linkId + " offset=" + offset);
            return;
        }
        long bytes = Math.min(Math.clamp(Integer.toUnsignedLong(byteCount), 0, MAX_READ_BYTES),
            link.image.byteSize() - offset);
        LinkReplies.hwsLinkRead(call.reply(), link.image.asSlice(offset, bytes));
        call.finish(0);
    }

    @Override
    public void hwsLinkEnd(Call call, long linkId) {
        LinkJob link = links.remove(linkId);
        if (link == null) {
            call.fatal("a link that ends must have inputs: linkId=" + linkId);
            return;
        }
        totalBytes -= link.bytes;
        totalInputs -= link.inputs.size();
        link.arena.close();
        call.finish(0);
    }
}
