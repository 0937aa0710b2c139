package io.hawser.gpu.software.compile;

import io.hawser.gpu.software.ptx.PtxType;
import java.lang.classfile.CodeBuilder;
import java.lang.classfile.Opcode;
import java.lang.classfile.TypeKind;
import java.lang.constant.ClassDesc;
import java.lang.constant.ConstantDescs;
import java.lang.constant.DynamicConstantDesc;
import java.lang.constant.MethodTypeDesc;
import java.util.HashMap;
import java.util.Map;

/**
 * Generates the bytecode of one method. A value on the JVM stack has the form of its PTX type: narrow integers are
 * widened by their sign, f32 is a float, f64 a double, and 16-bit floats are their bits. A register of 16 or 8 bits
 * holds its value extended with zeros.
 */
final class Gen {
    static final String EXEC = "io.hawser.gpu.software.exec";
    static final ClassDesc SLOT = ClassDesc.of(EXEC, "CtaSlot");
    static final ClassDesc GLOBALS = ClassDesc.of(EXEC, "Globals");
    static final ClassDesc INTS = ConstantDescs.CD_int.arrayType();
    static final ClassDesc LONGS = ConstantDescs.CD_long.arrayType();
    static final int SLOT_LOCAL = 0;
    static final int THREAD_LOCAL = 1;

    private static final DynamicConstantDesc<?> GLOBALS_CONSTANT = DynamicConstantDesc.ofNamed(
        ConstantDescs.ofConstantBootstrap(ConstantDescs.CD_MethodHandles, "classData", ConstantDescs.CD_Object),
        ConstantDescs.DEFAULT_NAME, GLOBALS);
    private static final ClassDesc FLOAT = ConstantDescs.CD_Float;
    private static final ClassDesc DOUBLE = ConstantDescs.CD_Double;

    final CodeBuilder cb;
    /** Addresses and methods that the code refers to. */
    final Placement placement;
    final Code code;
    private final Map<VReg, Integer> locals = new HashMap<>();
    private int nextLocal;
    int frameLocal = -1;
    int sharedLocal = -1;
    int localLocal = -1;
    int budgetLocal = -1;

    Gen(CodeBuilder cb, Placement placement, Code code) {
        this.cb = cb;
        this.placement = placement;
        this.code = code;
        this.nextLocal = 2;
    }

    int newLocal(int width) {
        int local = nextLocal;
        nextLocal += width;
        if (nextLocal > 60_000) {
            throw new Refusal("more registers than a JVM method has");
        }
        return local;
    }

    int local(VReg reg) {
        return locals.computeIfAbsent(reg, r -> newLocal(r.width()));
    }

    static ClassDesc desc(char jvm) {
        return switch (jvm) {
            case 'F' -> ConstantDescs.CD_float;
            case 'J' -> ConstantDescs.CD_long;
            case 'D' -> ConstantDescs.CD_double;
            case 'V' -> ConstantDescs.CD_void;
            case 'C' -> SLOT;
            case 'G' -> GLOBALS;
            case 'A' -> INTS;
            default -> ConstantDescs.CD_int;
        };
    }

    static TypeKind kind(char jvm) {
        return switch (jvm) {
            case 'F' -> TypeKind.FLOAT;
            case 'J' -> TypeKind.LONG;
            case 'D' -> TypeKind.DOUBLE;
            case 'V' -> TypeKind.VOID;
            default -> TypeKind.INT;
        };
    }

    /**
     * Calls a static method of the exec package.
     *
     * @param signature result and arguments, one letter each: I J F D V as in the JVM, C slot, G globals, A int array.
     */
    void call(String owner, String name, String signature) {
        ClassDesc[] args = new ClassDesc[signature.length() - 1];
        for (int i = 0; i < args.length; i++) {
            args[i] = desc(signature.charAt(i + 1));
        }
        cb.invokestatic(ClassDesc.of(EXEC, owner), name, MethodTypeDesc.of(desc(signature.charAt(0)), args));
    }

    void slot() {
        cb.aload(SLOT_LOCAL);
    }

    void thread() {
        cb.iload(THREAD_LOCAL);
    }

    void globals() {
        cb.loadConstant(GLOBALS_CONSTANT);
    }

    void shared() {
        cb.aload(sharedLocal);
    }

    void localMemory() {
        cb.aload(localLocal);
    }

    void ints(String field) {
        slot();
        cb.getfield(SLOT, field, INTS);
    }

    void push(int value) {
        cb.loadConstant(value);
    }

    void push(long value) {
        cb.loadConstant(value);
    }

    /** Pushes the thread's frame in local memory plus an offset. */
    void frame(long offset) {
        if (frameLocal < 0) {
            push((int) offset);
        } else {
            cb.iload(frameLocal);
            if (offset != 0) {
                push((int) offset);
                cb.iadd();
            }
        }
    }

    /** Pushes a value in the form of a type. */
    void push(Src src, PtxType as) {
        switch (src) {
            case Src.R r -> pushRegister(r, as);
            case Src.Int i -> constant(i.value(), as);
            case Src.Fp f -> floating(f, as);
            case Src.Special s -> {
                placement.special(this, s.name());
                convert(Specials.type(s.name()), as);
            }
            case Src.Symbol s -> constant(placement.address(s.scope(), s.name()) + s.addend(), as);
            case Src.Shared s -> constant(placement.shared(s.scope(), s.variable()) + s.addend(), as);
            case Src.Frame f -> {
                frame(f.offset());
                convert(PtxType.U32, as);
            }
        }
    }

    private void constant(long value, PtxType as) {
        switch (as.jvm()) {
            case 'J' -> push(value);
            case 'F' -> cb.loadConstant(Float.intBitsToFloat((int) value));
            case 'D' -> cb.loadConstant(Double.longBitsToDouble(value));
            default -> push(switch (as) {
                case PRED -> value != 0 ? 1 : 0;
                case U8, B8 -> (int) value & 0xFF;
                case S8 -> (byte) value;
                case U16, B16, F16, BF16 -> (int) value & 0xFFFF;
                case S16 -> (short) value;
                default -> (int) value;
            });
        }
    }

    private void floating(Src.Fp f, PtxType as) {
        double value = f.single() ? Float.intBitsToFloat((int) f.bits()) : Double.longBitsToDouble(f.bits());
        switch (as) {
            case F32 -> cb.loadConstant(f.single() ? Float.intBitsToFloat((int) f.bits()) : (float) value);
            case F64 -> cb.loadConstant(value);
            // An untyped register takes the constant's bits, in the register's width.
            case B32, U32, S32 -> push(f.single() ? (int) f.bits() : Float.floatToRawIntBits((float) value));
            case B64, U64, S64 -> push(f.single() ? Double.doubleToRawLongBits(value) : f.bits());
            default -> throw new Refusal("floating constant as ." + as.ptxName());
        }
    }

    private void pushRegister(Src.R r, PtxType as) {
        VReg reg = r.reg();
        load(reg);
        if (r.negated()) {
            push(1);
            cb.ixor();
            return;
        }
        if (reg.jvm == as.jvm()) {
            narrow(reg.bits(), as);
            return;
        }
        bits(reg);
        if (as.jvm() == 'F' || as.jvm() == 'I') {
            if (reg.width() == 2) {
                cb.l2i();
            }
            if (as.jvm() == 'F') {
                cb.invokestatic(FLOAT, "intBitsToFloat", MethodTypeDesc.of(ConstantDescs.CD_float,
                    ConstantDescs.CD_int));
            } else {
                narrow(reg.bits(), as);
            }
        } else {
            if (reg.width() == 1) {
                cb.i2l().loadConstant(0xFFFFFFFFL).land();
            }
            if (as.jvm() == 'D') {
                cb.invokestatic(DOUBLE, "longBitsToDouble", MethodTypeDesc.of(ConstantDescs.CD_double,
                    ConstantDescs.CD_long));
            }
        }
    }

    /** Converts the float or double just loaded from a register to its bits. */
    private void bits(VReg reg) {
        if (reg.jvm == 'F') {
            if (reg.computesFloats()) {
                call("FloatMath", "computedBits", "IF");
            } else {
                cb.invokestatic(FLOAT, "floatToRawIntBits", MethodTypeDesc.of(ConstantDescs.CD_int,
                    ConstantDescs.CD_float));
            }
        } else if (reg.jvm == 'D') {
            cb.invokestatic(DOUBLE, "doubleToRawLongBits", MethodTypeDesc.of(ConstantDescs.CD_long,
                ConstantDescs.CD_double));
        }
    }

    private void narrow(int bits, PtxType as) {
        if (as.jvm() != 'I' || as == PtxType.PRED) {
            return;
        }
        switch (as) {
            case S8 -> cb.i2b();
            case S16 -> cb.i2s();
            case U8, B8 -> {
                if (bits > 8) {
                    push(0xFF);
                    cb.iand();
                }
            }
            default -> {
                if (as.bits() == 16 && bits > 16) {
                    cb.i2c();
                }
            }
        }
    }

    void load(VReg reg) {
        cb.loadLocal(kind(reg.jvm), local(reg));
    }

    void store(VReg reg) {
        cb.storeLocal(kind(reg.jvm), local(reg));
    }

    /**
     * Converts an integer on the stack between the forms of two types, where a value's type differs from the operand's.
     */
    void convert(PtxType from, PtxType as) {
        if (from.jvm() == 'I' && as.jvm() == 'J') {
            cb.i2l();
            if (!from.signed() && from.bits() == 32) {
                cb.loadConstant(0xFFFFFFFFL).land();
            }
        } else if (from.jvm() == 'J' && as.jvm() == 'I') {
            cb.l2i();
            narrow(32, as);
        } else if (from.jvm() == 'I' && as.jvm() == 'I') {
            narrow(from.bits(), as);
        } else if (from.jvm() == 'I' && as.jvm() == 'F') {
            cb.invokestatic(FLOAT, "intBitsToFloat", MethodTypeDesc.of(ConstantDescs.CD_float, ConstantDescs.CD_int));
        } else if (from.jvm() == 'J' && as.jvm() == 'D') {
            cb.invokestatic(DOUBLE, "longBitsToDouble", MethodTypeDesc.of(ConstantDescs.CD_double,
                ConstantDescs.CD_long));
        } else if (from.jvm() != as.jvm()) {
            throw new Refusal("value of ." + from.ptxName() + " as ." + as.ptxName());
        }
    }

    /**
     * Stores a value in the form of a type into a register; a wider register receives the value widened by the type's
     * sign.
     */
    void pop(VReg reg, PtxType from) {
        if (reg.jvm == from.jvm()) {
            if (reg.type == PtxType.PRED || reg.jvm != 'I') {
                store(reg);
                return;
            }
            if (reg.bits() == 16) {
                if (from.bits() > 8 || from.signed()) {
                    cb.i2c();
                }
            } else if (reg.bits() == 8) {
                push(0xFF);
                cb.iand();
            }
        } else if (from.jvm() == 'F') {
            call("FloatMath", "computedBits", "IF");
            if (reg.width() == 2) {
                convert(PtxType.U32, PtxType.B64);
            }
        } else if (from.jvm() == 'D') {
            cb.invokestatic(DOUBLE, "doubleToRawLongBits", MethodTypeDesc.of(ConstantDescs.CD_long,
                ConstantDescs.CD_double));
        } else if (reg.jvm == 'D' && from.jvm() == 'I') {
            convert(from, PtxType.B64);
            convert(PtxType.B64, PtxType.F64);
        } else {
            convert(from, reg.jvm == 'F' ? PtxType.F32 : reg.jvm == 'D' ? PtxType.F64 : reg.type);
        }
        store(reg);
    }

    /** Emits an instruction under its guard. */
    void emit(Ins ins) {
        if (ins.line < 65_536) {
            cb.lineNumber(ins.line);
        }
        if (ins.guard == null) {
            ins.body.emit(this);
            return;
        }
        var skip = cb.newLabel();
        load(ins.guard);
        cb.branch(ins.guardNegated ? Opcode.IFNE : Opcode.IFEQ, skip);
        ins.body.emit(this);
        cb.labelBinding(skip);
    }
}
