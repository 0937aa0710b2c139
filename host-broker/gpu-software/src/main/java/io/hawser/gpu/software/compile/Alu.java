package io.hawser.gpu.software.compile;

import io.hawser.gpu.software.exec.BitMath;
import io.hawser.gpu.software.exec.FloatMath;
import io.hawser.gpu.software.exec.HalfMath;
import io.hawser.gpu.software.exec.IntMath;
import io.hawser.gpu.software.exec.Ptx;
import io.hawser.gpu.software.ptx.PtxType;
import java.lang.classfile.CodeBuilder;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Consumer;

/**
 * The table of arithmetic instructions. A key of opcode, modifiers and type gives the types of operands and result and
 * the code that computes the result. Most rows come from the {@link Ptx} annotations of the exec package. This class
 * adds the instructions that are a single JVM instruction.
 */
record Alu(String key, PtxType result, List<PtxType> args, Consumer<Gen> code) {
    private static final Map<String, Alu> TABLE = new HashMap<>();
    private static final Set<String> OPCODES = new HashSet<>();

    static {
        for (Class<?> owner : List.of(IntMath.class, BitMath.class, FloatMath.class, HalfMath.class)) {
            for (Method method : owner.getDeclaredMethods()) {
                Ptx ptx = method.getAnnotation(Ptx.class);
                if (ptx != null) {
                    for (String key : ptx.value()) {
                        annotated(key, ptx, method);
                    }
                }
            }
        }
        direct("add", "s16 u16 s32 u32", 2, CodeBuilder::iadd);
        direct("sub", "s16 u16 s32 u32", 2, CodeBuilder::isub);
        direct("mul.lo", "s16 u16 s32 u32", 2, CodeBuilder::imul);
        direct("add", "s64 u64", 2, CodeBuilder::ladd);
        direct("sub", "s64 u64", 2, CodeBuilder::lsub);
        direct("mul.lo", "s64 u64", 2, CodeBuilder::lmul);
        direct("neg", "s16 s32", 1, CodeBuilder::ineg);
        direct("neg", "s64", 1, CodeBuilder::lneg);
        direct("and", "pred b16 b32", 2, CodeBuilder::iand);
        direct("or", "pred b16 b32", 2, CodeBuilder::ior);
        direct("xor", "pred b16 b32", 2, CodeBuilder::ixor);
        direct("and", "b64", 2, CodeBuilder::land);
        direct("or", "b64", 2, CodeBuilder::lor);
        direct("xor", "b64", 2, CodeBuilder::lxor);
        direct("not", "pred", 1, cb -> cb.iconst_1().ixor());
        direct("not", "b16 b32", 1, cb -> cb.iconst_m1().ixor());
        direct("not", "b64", 1, cb -> cb.loadConstant(-1L).lxor());
        direct("add", "f32", 2, CodeBuilder::fadd);
        direct("sub", "f32", 2, CodeBuilder::fsub);
        direct("mul", "f32", 2, CodeBuilder::fmul);
        direct("add", "f64", 2, CodeBuilder::dadd);
        direct("sub", "f64", 2, CodeBuilder::dsub);
        direct("mul", "f64", 2, CodeBuilder::dmul);
        for (String division : List.of("div.rn", "div.approx", "div.full")) {
            direct(division, "f32", 2, CodeBuilder::fdiv);
        }
        direct("div.rn", "f64", 2, CodeBuilder::ddiv);
    }

    private static void direct(String op, String types, int count, Consumer<CodeBuilder> code) {
        for (String name : types.split(" ")) {
            PtxType type = PtxType.byName(name);
            PtxType[] args = new PtxType[count];
            Arrays.fill(args, type);
            put(new Alu(op + "." + name, type, List.of(args), g -> code.accept(g.cb)));
        }
    }

    private static void annotated(String key, Ptx ptx, Method method) {
        PtxType type = null;
        for (String word : key.split("\\.")) {
            PtxType named = PtxType.byName(word);
            type = named != null ? named : type;
        }
        PtxType result = ptx.result().equals("T") ? type : PtxType.byName(ptx.result());
        List<PtxType> args = new ArrayList<>();
        StringBuilder signature = new StringBuilder().append(result.jvm());
        String[] words = ptx.args().isEmpty() ? null : ptx.args().split(",");
        for (int i = 0; i < method.getParameterCount(); i++) {
            PtxType arg = words == null || words[i].equals("T") ? type : PtxType.byName(words[i]);
            args.add(arg);
            signature.append(arg.jvm());
        }
        String owner = method.getDeclaringClass().getSimpleName();
        put(new Alu(key, result, List.copyOf(args), g -> g.call(owner, method.getName(), signature.toString())));
    }

    private static void put(Alu alu) {
        OPCODES.add(alu.key.split("\\.")[0]);
        if (TABLE.put(alu.key, alu) != null) {
            throw new AssertionError("instruction must have one meaning: " + alu.key);
        }
    }

    /** Whether the table has an instruction of this opcode. */
    static boolean isKnown(String opcode) {
        return OPCODES.contains(opcode);
    }

    static Alu find(String key) {
        return TABLE.get(key);
    }
}
