package io.hawser.gpu.software.compile;

import io.hawser.gpu.software.exec.CodeLoader;
import io.hawser.gpu.software.exec.CtaSlot;
import io.hawser.gpu.software.exec.DeviceFault;
import io.hawser.gpu.software.exec.KernelLaunch;
import io.hawser.gpu.software.exec.KernelPlan;
import io.hawser.gpu.software.exec.Scheduler;
import io.hawser.gpu.software.ptx.PtxException;
import io.hawser.gpu.software.ptx.Variable;
import java.util.List;

/** An entry function of a linked image. Thread-safe once the image is placed. */
public final class PtxKernel {
    /**
     * A kernel parameter's place in the packed parameter buffer.
     *
     * @param offset bytes from the start.
     * @param bytes  size.
     */
    public record Param(int offset, int bytes) {}

    // A guest chooses the name; refusals carry it into logs and to the guest's standard error.
    private static final int MAX_NAME = 400;

    private final PtxImage image;
    private final PtxModule module;
    private final FunctionRef kernel;
    private final SharedLayout shared;
    private final List<Param> params;
    private final boolean launches;
    private volatile PtxException refusal;
    private volatile KernelPlan plan;
    private volatile int steps = Steps.UNKNOWN;
    private int registers;

    PtxKernel(PtxImage image, PtxModule module, FunctionRef kernel) {
        this.image = image;
        this.module = module;
        this.kernel = kernel;
        PtxException refused = image.linker().refusal(kernel);
        SharedLayout layout = null;
        List<Param> inBuffer = List.of();
        try {
            inBuffer = ParamLayout.of(kernel.function());
            layout = new SharedLayout(image.linker(), kernel);
        } catch (Refusal e) {
            refused = refused != null ? refused
                : PtxException.unsupported(kernel.function().line(), e.getMessage());
        }
        shared = layout;
        params = inBuffer;
        launches = image.linker().launches(kernel);
        refusal = refused == null ? null : inKernel(refused);
    }

    /** A refusal with the kernel's name added. */
    private PtxException inKernel(PtxException refused) {
        String name = name().length() <= MAX_NAME ? name() : name().substring(0, MAX_NAME) + "...";
        return new PtxException(refused.cuResult(), refused.getMessage() + ", in kernel " + name);
    }

    /** The reason that the software GPU refuses the kernel, with line and instruction; null if it found none so far. */
    public PtxException refusal() {
        return refusal;
    }

    /** The mangled name. */
    public String name() {
        return kernel.name();
    }

    /** Whether the kernel can launch kernels. */
    public boolean launches() {
        return launches;
    }

    /** Parameters in order; empty for a refused kernel with parameters of an unsupported kind. */
    public List<Param> params() {
        return params;
    }

    /** Size of the packed parameter buffer. */
    public int paramBytes() {
        return params.isEmpty() ? 0 : params.getLast().offset() + params.getLast().bytes();
    }

    /** CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES: shared memory without the dynamic part. */
    public int staticSharedBytes() {
        return shared == null ? 0 : shared.staticBytes;
    }

    /**
     * CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES of one thread: the local variables of all functions that the kernel reaches.
     */
    public int localBytesPerThread() {
        long bytes = 0;
        for (FunctionRef function : image.linker().reachable(kernel)) {
            bytes += function.function().variables().stream().filter(v -> v.space() == Variable.Space.LOCAL)
                .mapToLong(Variable::bytes).sum();
        }
        return (int) Math.min(bytes, Integer.MAX_VALUE);
    }

    /** CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES: const variables of the kernel's module. */
    public int constBytes() {
        return module.constBytes();
    }

    /**
     * CU_FUNC_ATTRIBUTE_NUM_REGS: an estimate from the largest number of 32-bit values alive at once, 16..255. A
     * refused kernel has 16.
     */
    public synchronized int registers() {
        if (refusal != null) {
            return 16;
        }
        if (registers == 0) {
            try {
                Code code = Lowering.lower(kernel, LinkContext.CHECK);
                Liveness liveness = new Liveness(code);
                int most = 0;
                for (Block block : code.blocks) {
                    most = Math.max(most, liveness.in(block).stream().map(id -> code.registers.get(id).width()).sum());
                }
                // Addresses and results within a block add to the values alive at its start.
                registers = Math.clamp(most + 8, 16, 255);
            } catch (PtxException e) {
                throw new AssertionError("module was checked when it was loaded", e);
            }
        }
        return registers;
    }

    /** CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK: from .maxntid or .reqntid, otherwise 1024. */
    public int maxThreadsPerBlock() {
        int[] block = kernel.function().requiredBlock() != null ? kernel.function().requiredBlock()
            : kernel.function().maxBlock();
        return block == null ? 1024 : (int) Math.min(1024, (long) block[0] * block[1] * block[2]);
    }

    /** The block size that .reqntid requires as {x, y, z}, or null. */
    public int[] requiredBlock() {
        int[] block = kernel.function().requiredBlock();
        return block == null ? null : block.clone();
    }

    /** PTX .version of the kernel's module as major * 10 + minor, for CU_FUNC_ATTRIBUTE_PTX_VERSION. */
    public int ptxVersion() {
        return module.scope.tree.version();
    }

    /** .target of the kernel's module, for example 75. */
    public int targetSm() {
        return module.scope.tree.target();
    }

    /**
     * Generates the bytecode unless it exists. The first launch does the same.
     *
     * @throws PtxException the {@link #refusal}.
     */
    public void prepare() throws PtxException {
        if (plan == null) {
            make();
        }
    }

    private synchronized void make() throws PtxException {
        if (plan != null) {
            return;
        }
        try {
            if (refusal == null) {
                translate();
            }
        } catch (PtxException e) {
            refusal = inKernel(e);
        }
        if (refusal != null) {
            throw refusal;
        }
    }

    private void translate() throws PtxException {
        KernelCompiler.Result result = new KernelCompiler(image.linker()).compile(kernel, new Places());
        steps = result.steps();
        plan = new KernelPlan(name(), CodeLoader.load(result.classFile(), image.globals()), result.savedInts(),
            result.savedLongs(), shared.totalBytes, result.localBytes(), image.linker().recursionBelow(kernel),
            image.linker().warpOps(kernel));
    }

    /**
     * Whether a launch always ends within a number of steps, whatever its parameters and memory hold. A step is about
     * one instruction of one thread. The bound is known for {@link #prepare prepared} kernels without loops and calls.
     */
    public boolean endsWithin(long threads, long mostSteps) {
        KernelPlan known = plan;
        return known != null && steps != Steps.UNKNOWN && threads <= mostSteps / steps
        // Clearing local memory costs about one step a word.
            && threads <= mostSteps / (1 + known.localBytes() / Integer.BYTES);
    }

    /**
     * Runs one CTA to its end on the calling thread.
     *
     * @param slot scratch memory of the calling thread; launches of any kernel may reuse it.
     * @throws DeviceFault if the kernel faults or the launch is cancelled; the slot stays usable.
     */
    public void runCta(KernelLaunch launch, int ctaX, int ctaY, int ctaZ, CtaSlot slot) {
        begin(launch, ctaX, ctaY, ctaZ, slot);
        while (!resume(slot)) {
            // All threads of the CTA wait for other CTAs, which run on other host threads.
            Thread.yield();
        }
    }

    /**
     * Begins a CTA that {@link #resume} continues. Cooperative launches use it: every CTA has its own slot, and a few
     * host threads take turns at them. {@code begin; while (!resume(slot)) other CTAs;} equals {@link #runCta}.
     *
     * @throws DeviceFault CUDA_ERROR_NOT_SUPPORTED if {@link #prepare} has not been called and would fail.
     */
    public void begin(KernelLaunch launch, int ctaX, int ctaY, int ctaZ, CtaSlot slot) {
        try {
            prepare();
        } catch (PtxException e) {
            throw new DeviceFault(e.cuResult(), e.getMessage());
        }
        Scheduler.begin(plan, launch, ctaX, ctaY, ctaZ, slot);
    }

    /**
     * Runs the slot's CTA until it ends or all of its threads only spin on memory.
     *
     * @return whether the CTA has ended.
     * @throws DeviceFault as {@link #runCta}.
     */
    public boolean resume(CtaSlot slot) {
        return Scheduler.resume(slot);
    }

    /** Addresses for this kernel's code. */
    private final class Places implements Placement {
        @Override
        public long address(ModuleScope scope, String name) {
            return image.address(scope, name);
        }

        @Override
        public long shared(ModuleScope scope, Variable variable) {
            return shared.offset(scope, variable);
        }

        @Override
        public void special(Gen g, String name) {
            Specials.push(g, name);
        }

        @Override
        public void invoke(Gen g, FunctionRef function) {
            throw new AssertionError("only the kernel compiler emits calls: " + function.name());
        }
    }
}
