package io.hawser.worker.calls;

import static io.hawser.cuda.generated.cufft.cufftResult.CUFFT_ALLOC_FAILED;
import static io.hawser.cuda.generated.cufft.cufftResult.CUFFT_INVALID_DEVICE;
import static io.hawser.cuda.generated.cufft.cufftResult.CUFFT_INVALID_TYPE;
import static io.hawser.cuda.generated.cufft.cufftResult.CUFFT_NOT_SUPPORTED;
import static io.hawser.cuda.generated.cufft.cufftResult.CUFFT_NO_WORKSPACE;
import static io.hawser.cuda.generated.cufft.cufftResult.CUFFT_SETUP_FAILED;
import static io.hawser.cuda.generated.cufft.cufftResult.CUFFT_SUCCESS;

import io.hawser.cuda.backend.CufftBackend;
import io.hawser.cuda.backend.FftPlan;
import io.hawser.cuda.backend.GpuBackend;
import io.hawser.cuda.backend.MathProvider;
import io.hawser.cuda.generated.HandleKind;
import io.hawser.cuda.generated.cufft.CufftDispatcher;
import io.hawser.cuda.generated.cufft.CufftDriver;
import io.hawser.cuda.generated.cufft.ExecManualCalls;
import io.hawser.cuda.generated.cufft.HandleManualCalls;
import io.hawser.cuda.generated.cufft.HandleReplies;
import io.hawser.cuda.generated.cufft.HwsFftExec;
import io.hawser.cuda.generated.cufft.PlanManualCalls;
import io.hawser.cuda.generated.cufft.PlanReplies;
import io.hawser.cuda.generated.cufft.SizeManualCalls;
import io.hawser.cuda.generated.cufft.SizeReplies;
import io.hawser.worker.session.Call;
import io.hawser.worker.session.GuestObjects;
import io.hawser.worker.session.Handle;
import io.hawser.worker.session.MemoryQuota;
import io.hawser.worker.session.Session;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/**
 * cuFFT. The first call opens the machine's library. The worker computes once for each plan what memory an execution
 * accesses, and allocates the work area by itself, so that the quota counts it. Session thread.
 */
final class CufftCalls implements LibraryCalls, HandleManualCalls<Call>, PlanManualCalls<Call>, SizeManualCalls<Call>,
    ExecManualCalls<Call> {
    /** Plans that a session has not destroyed: each takes memory of the library that no quota counts. */
    static final int MAX_PLANS = 8192;

    private final GuestObjects objects;
    private final GpuBackend backend;
    private CufftBackend cufft; // null while the library has not been opened, or is missing
    private CufftDispatcher<Call> dispatcher;
    private int plans; // also those whose context has ended, which the library still has

    /** A plan that the library has made, and the state that the library has for it. */
    private static final class Plan {
        private final FftPlan arguments;
        private final long workBytes;
        private final long ownArea; // the work area that the worker has allocated; 0 for none
        private long area; // that the library has
        private long stream; // that the library has

        Plan(FftPlan arguments, long workBytes, long ownArea) {
            this.arguments = arguments;
            this.workBytes = workBytes;
            this.ownArea = ownArea;
        }
    }

    CufftCalls(Session session) {
        this.objects = session.objects();
        this.backend = session.backend();
    }

    @Override
    public void dispatch(int opcode, Call call) {
        if (dispatcher == null) {
            cufft = MathProviders.open(backend, MathProvider::cufft);
            dispatcher = new CufftDispatcher<>(new CufftDriver() {}, this, this, this, this);
        }
        dispatcher.dispatch(call);
    }

    @Override
    public void cufftGetVersion(Call call) {
        MemorySegment version = call.scratch(Integer.BYTES);
        int status = cufft == null ? CUFFT_NOT_SUPPORTED : cufft.version(version);
        if (status == CUFFT_SUCCESS) {
            HandleReplies.cufftGetVersion(call.reply(), version.get(ValueLayout.JAVA_INT, 0));
        }
        call.finish(status);
    }

    @Override
    public void cufftGetProperty(Call call, int type) {
        MemorySegment value = call.scratch(Integer.BYTES);
        int status = cufft == null ? CUFFT_NOT_SUPPORTED : cufft.property(type, value);
        if (status == CUFFT_SUCCESS) {
            HandleReplies.cufftGetProperty(call.reply(), value.get(ValueLayout.JAVA_INT, 0));
        }
        call.finish(status);
    }

    @Override
    public void hwsFftGetSize(Call call, MemorySegment content, int isEstimate) {
        FftPlan plan = FftPlan.of(content);
        MemorySegment bytes = call.scratch(Long.BYTES);
        int status = cufft == null ? CUFFT_NOT_SUPPORTED : plan.status();
        status = status != CUFFT_SUCCESS ? status : cufft.workSize(plan, isEstimate != 0, bytes);
        if (status == CUFFT_SUCCESS) {
            SizeReplies.hwsFftGetSize(call.reply(), bytes.get(ValueLayout.JAVA_LONG, 0));
        }
        call.finish(status);
    }

    @Override
    public void hwsFftMakePlan(Call call, long planId, MemorySegment content, int autoAllocate) {
        MemorySegment workSize = call.scratch(Long.BYTES);
        int status = make(call, planId, FftPlan.of(content), autoAllocate != 0, workSize);
        // The guest waits for the result, so it never uses the id of a plan that was not made.
        if (status == CUFFT_SUCCESS && !call.isRejected()) {
            PlanReplies.hwsFftMakePlan(call.reply(), workSize.get(ValueLayout.JAVA_LONG, 0));
        }
        call.finish(status);
    }

    private int make(Call call, long id, FftPlan arguments, boolean hasArea, MemorySegment workSize) {
        Handle context = objects.owningContext();
        if (cufft == null || context == null) {
            return cufft == null ? CUFFT_NOT_SUPPORTED : CUFFT_SETUP_FAILED;
        }
        if (arguments.status() != CUFFT_SUCCESS || plans >= MAX_PLANS) {
            return plans >= MAX_PLANS ? CUFFT_ALLOC_FAILED : arguments.status();
        }
        MemoryQuota.Charge charge = objects.quota().claim(objects.deviceOf(context), cufft.planBytes());
        if (charge == null) {
            return CUFFT_ALLOC_FAILED;
        }
        MemorySegment made = call.scratch(Long.BYTES);
        int status = cufft.make(arguments, made, workSize);
        if (status != CUFFT_SUCCESS) {
            charge.giveBack();
            return status;
        }
        long handle = made.get(ValueLayout.JAVA_LONG, 0);
        long workBytes = workSize.get(ValueLayout.JAVA_LONG, 0);
        MemorySegment area = call.scratch(Long.BYTES);
        if (hasArea && workBytes > 0) {
            status = allocate(handle, workBytes, charge, area);
        }
        Plan plan = new Plan(arguments, workBytes, area.get(ValueLayout.JAVA_LONG, 0));
        plan.area = plan.ownArea;
        if (status == CUFFT_SUCCESS) {
            objects.register(call, HandleKind.CUFFT, id, handle, context, plan);
        }
        if (status != CUFFT_SUCCESS || call.isRejected()) {
            free(plan);
            cufft.destroy(handle);
            charge.giveBack();
            return status;
        }
        plans++;
        objects.keepCharge(objects.handles().find(HandleKind.CUFFT, id), charge);
        return CUFFT_SUCCESS;
    }

    private int allocate(long handle, long bytes, MemoryQuota.Charge charge, MemorySegment area) {
        if (bytes > Long.MAX_VALUE - charge.bytes() || !charge.grow(charge.bytes() + bytes)
            || backend.driver().cuMemAlloc_v2(area, bytes) != 0) {
            return CUFFT_ALLOC_FAILED;
        }
        return cufft.setWorkArea(handle, area.get(ValueLayout.JAVA_LONG, 0));
    }

    private void free(Plan plan) {
        if (plan.ownArea != 0) {
            backend.driver().cuMemFree_v2(plan.ownArea);
        }
    }

    @Override
    public void hwsFftDestroy(Call call, long plan, long planId) {
        Handle handle = objects.handles().find(HandleKind.CUFFT, planId);
        int status = objects.enter(handle.owner()); // a work area belongs to the context of its plan
        if (status == 0) {
            status = cufft.destroy(plan);
            free(handle.info(Plan.class));
        }
        plans--;
        call.drop(HandleKind.CUFFT, planId);
        call.finish(status);
    }

    @Override
    public void hwsFftExec(Call call, MemorySegment execution, long idata, long odata) {
        long made = call.handle(HandleKind.CUFFT, number(execution, HwsFftExec.PLAN_OFFSET));
        Handle handle = call.lastObject();
        long stream = call.handle(HandleKind.STREAM, number(execution, HwsFftExec.STREAM_OFFSET));
        if (call.isRejected()) {
            return;
        }
        Plan plan = handle.info(Plan.class);
        int type = execution.get(ValueLayout.JAVA_INT_UNALIGNED, HwsFftExec.TYPE_OFFSET);
        int status = handle.owner() != objects.owningContext() ? CUFFT_INVALID_DEVICE
            : plan.arguments.serves(type) ? CUFFT_SUCCESS : CUFFT_INVALID_TYPE;
        if (status != CUFFT_SUCCESS) {
            call.fail(status);
            return;
        }
        boolean isInPlace = idata == odata;
        if (!call.checkDevice(idata, plan.arguments.input(isInPlace).bytes())
            || !call.checkDevice(odata, plan.arguments.output(isInPlace).bytes())) {
            return;
        }
        long given = plan.workBytes == 0 ? 0 : number(execution, HwsFftExec.WORK_AREA_OFFSET);
        if (given != 0 && !call.checkDevice(given, plan.workBytes)) {
            return;
        }
        status = apply(made, plan, stream, given != 0 ? given : plan.ownArea);
        if (status != CUFFT_SUCCESS) {
            call.fail(status);
            return;
        }
        call.countKernel();
        call.finish(cufft.execute(made, plan.arguments, type, idata, odata,
            execution.get(ValueLayout.JAVA_INT_UNALIGNED, HwsFftExec.DIRECTION_OFFSET)));
    }

    /** Gives the library the state of a plan that has changed. */
    private int apply(long made, Plan plan, long stream, long area) {
        if (area == 0 && plan.workBytes > 0) {
            return CUFFT_NO_WORKSPACE;
        }
        if (area != plan.area) {
            int status = cufft.setWorkArea(made, area);
            if (status != CUFFT_SUCCESS) {
                return status;
            }
            plan.area = area;
        }
        if (stream != plan.stream) {
            int status = cufft.setStream(made, stream);
            if (status != CUFFT_SUCCESS) {
                return status;
            }
            plan.stream = stream;
        }
        return CUFFT_SUCCESS;
    }

    private static long number(MemorySegment content, long offset) {
        return content.get(ValueLayout.JAVA_LONG_UNALIGNED, offset);
    }
}
