package io.hawser.gpu.software.compile;

import io.hawser.gpu.software.exec.CodeLoader;
import io.hawser.gpu.software.ptx.PtxException;
import java.lang.classfile.ClassFile;
import java.lang.classfile.CodeBuilder;
import java.lang.classfile.instruction.SwitchCase;
import java.lang.constant.ClassDesc;
import java.lang.constant.ConstantDescs;
import java.lang.constant.MethodTypeDesc;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** Generates a kernel's class: a method for each region, one for each called function, and the loop over threads. */
final class KernelCompiler {
    private static final ClassDesc SELF = ClassDesc.of(CodeLoader.CLASS_NAME);
    private static final ClassDesc SUPER = ClassDesc.of(Gen.EXEC, "KernelCode");
    private static final MethodTypeDesc REGION = MethodTypeDesc.of(ConstantDescs.CD_int, Gen.SLOT,
        ConstantDescs.CD_int);
    private static final MethodTypeDesc RUN = MethodTypeDesc.of(ConstantDescs.CD_void, Gen.SLOT, ConstantDescs.CD_int,
        ConstantDescs.CD_int);

    private record Callee(String method, Code code) {}

    private final LinkContext link;
    private final Map<FunctionRef, Callee> callees = new HashMap<>();
    private final List<FunctionRef> queue = new ArrayList<>();
    private PtxException failure;

    KernelCompiler(LinkContext link) {
        this.link = link;
    }

    /** The class file, a thread's saved values and local memory, and the bound from {@link Steps#most}. */
    record Result(byte[] classFile, int savedInts, int savedLongs, int localBytes, int steps) {}

    // Without recursion each function is on the call stack at most once.
    private int localBytes(Code kernel) {
        int bytes = (kernel.frameBytes + 15) / 16 * 16;
        for (Callee callee : callees.values()) {
            bytes += (callee.code().frameBytes + 15) / 16 * 16;
        }
        return bytes;
    }

    Result compile(FunctionRef kernel, Placement placement) throws PtxException {
        Code code = Lowering.lower(kernel, link);
        int steps = Steps.most(code);
        Spins.insert(code);
        code.decideTypes();
        try {
            Liveness liveness = new Liveness(code);
            Regions regions = new Regions(code);
            SavedSlots slots = new SavedSlots(code, liveness, regions);
            Placement with = new Calls(placement);
            byte[] bytes = ClassFile.of().build(SELF, cb -> {
                cb.withFlags(ClassFile.ACC_FINAL | ClassFile.ACC_SUPER);
                cb.withSuperclass(SUPER);
                cb.withMethodBody(ConstantDescs.INIT_NAME, ConstantDescs.MTD_void, ClassFile.ACC_PUBLIC,
                    b -> b.aload(0).invokespecial(SUPER, ConstantDescs.INIT_NAME, ConstantDescs.MTD_void).return_());
                cb.withMethodBody("run", RUN, ClassFile.ACC_PUBLIC, b -> loop(b, regions));
                for (Regions.Region region : regions.all) {
                    cb.withMethodBody("region" + region.number, REGION, ClassFile.ACC_STATIC,
                        b -> new MethodEmitter(new Gen(b, with, code), liveness, slots).region(regions, region));
                }
                for (int i = 0; i < queue.size(); i++) {
                    Callee callee = callees.get(queue.get(i));
                    cb.withMethodBody(callee.method(), type(callee.code()), ClassFile.ACC_STATIC,
                        b -> new MethodEmitter(new Gen(b, with, callee.code()), new Liveness(callee.code()), null)
                            .function());
                }
            });
            if (failure != null) {
                throw failure;
            }
            return new Result(bytes, slots.ints, slots.longs, localBytes(code), steps);
        } catch (Refusal e) {
            throw failure != null ? failure
                : PtxException.unsupported(kernel.function().line(), e.getMessage());
        } catch (IllegalArgumentException e) {
            // The class file's own limits: 64 KiB a method, 65535 constants.
            throw PtxException.unsupported(kernel.function().line(), "a kernel too large for a JVM class: "
                + e.getMessage());
        }
    }

    private static MethodTypeDesc type(Code code) {
        List<ClassDesc> args = new ArrayList<>(List.of(Gen.SLOT, ConstantDescs.CD_int, ConstantDescs.CD_int));
        code.parameters.forEach(p -> args.add(Gen.desc(p.type.jvm())));
        return MethodTypeDesc.of(code.returns == null ? ConstantDescs.CD_void : Gen.desc(code.returns.jvm()), args);
    }

    private static void loop(CodeBuilder b, Regions regions) {
        int slot = 1;
        int to = 3;
        int next = 4;
        int t = 2;
        int at = 5;
        var check = b.newLabel();
        var body = b.newLabel();
        var again = b.newLabel();
        var store = b.newLabel();
        var step = b.newLabel();
        var end = b.newLabel();
        b.aload(slot).getfield(Gen.SLOT, "next", Gen.INTS).astore(next);
        b.goto_(check);
        b.labelBinding(body);
        b.aload(next).iload(t).iaload().istore(at);
        b.iload(at).iflt(step);
        b.aload(slot).iload(t).putfield(Gen.SLOT, "running", ConstantDescs.CD_int);
        b.labelBinding(again);
        if (regions.all.size() == 1) {
            b.aload(slot).iload(t).invokestatic(SELF, "region0", REGION).istore(at);
        } else {
            List<SwitchCase> cases = new ArrayList<>();
            regions.all.forEach(r -> cases.add(SwitchCase.of(r.number, b.newLabel())));
            var done = b.newLabel();
            b.iload(at).tableswitch(0, regions.all.size() - 1, end, cases);
            for (SwitchCase one : cases) {
                b.labelBinding(one.target());
                b.aload(slot).iload(t).invokestatic(SELF, "region" + one.caseValue(), REGION).istore(at);
                b.goto_(done);
            }
            b.labelBinding(done);
        }
        b.iload(at).iflt(store).goto_(again);
        b.labelBinding(store);
        b.aload(next).iload(t).iload(at).iastore();
        b.labelBinding(step);
        b.iinc(t, 1);
        b.labelBinding(check);
        b.iload(t).iload(to).if_icmplt(body);
        b.labelBinding(end);
        b.return_();
    }

    /** Adds calls between translated functions to the image's placement. */
    private final class Calls implements Placement {
        private final Placement image;

        Calls(Placement image) {
            this.image = image;
        }

        @Override
        public long address(ModuleScope scope, String name) {
            return image.address(scope, name);
        }

        @Override
        public long shared(ModuleScope scope, io.hawser.gpu.software.ptx.Variable variable) {
            return image.shared(scope, variable);
        }

        @Override
        public void special(Gen g, String name) {
            image.special(g, name);
        }

        @Override
        public void invoke(Gen g, FunctionRef function) {
            Callee callee = callees.get(function);
            if (callee == null) {
                try {
                    callee = new Callee("function" + callees.size(), Lowering.lower(function, link));
                } catch (PtxException e) {
                    failure = e;
                    throw new Refusal(e.getMessage());
                }
                callees.put(function, callee);
                queue.add(function);
            }
            g.cb.invokestatic(SELF, callee.method(), type(callee.code()));
        }
    }
}
