package io.hawser.worker.jail;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.List;

/**
 * A seccomp filter: classic BPF over {@code struct seccomp_data}. The kernel caches the result for system calls whose
 * result does not depend on arguments, so these cost almost nothing. For the other calls it compiles the filter.
 */
final class Filter {
    // Linux seccomp.h: results of a filter
    static final int ALLOW = 0x7fff_0000;
    static final int KILL = 0x8000_0000; // the whole process
    static final int NOTIFY = 0x7fc0_0000;
    private static final int ERRNO = 0x0005_0000;
    private static final int EPERM = 1;
    private static final int ENOSYS = 38;

    // Linux bpf_common.h: instruction class and mode in one number
    private static final short LOAD_WORD = 0x20; // BPF_LD | BPF_W | BPF_ABS
    private static final short JUMP_EQUAL = 0x15; // BPF_JMP | BPF_JEQ | BPF_K
    private static final short JUMP_NOT_BELOW = 0x35; // BPF_JMP | BPF_JGE | BPF_K
    private static final short JUMP_SET = 0x45; // BPF_JMP | BPF_JSET | BPF_K
    private static final short RETURN = 0x06; // BPF_RET | BPF_K
    private static final short AND = 0x54; // BPF_ALU | BPF_AND | BPF_K
    private static final short SHIFT_RIGHT = 0x74; // BPF_ALU | BPF_RSH | BPF_K

    // Linux seccomp.h, struct seccomp_data
    private static final int NUMBER_OFFSET = 0;
    private static final int ARCHITECTURE_OFFSET = 4;
    private static final int ARGUMENTS_OFFSET = 16;
    private static final int AUDIT_ARCH_X86_64 = 0xc000_003e; // Linux audit.h
    // Linux asm/unistd.h: the calls of the x32 ABI, which have their own table
    private static final int X32_BIT = 0x4000_0000;
    private static final int CLONE3 = 435;
    private static final int INSTRUCTION_BYTES = 8; // Linux filter.h, struct sock_filter
    private static final int PROGRAM_BYTES = 16; // struct sock_fprog
    private static final int MAX_INSTRUCTIONS = 4096; // BPF_MAXINSNS

    // No correct worker makes these calls, not even to probe the kernel. A worker that makes one has been taken over,
    // so the kernel ends it.
    private static final int[] DEADLY = {
        59, // execve
        322, // execveat
        101, // ptrace
        311, // process_vm_writev
        175, // init_module
        313, // finit_module
        246, // kexec_load
        165, // mount
    };

    private final List<long[]> program = new ArrayList<>(); // code, jump if true, jump if false, constant
    private final int refusal;

    private Filter(int refusal) {
        this.refusal = refusal;
    }

    /**
     * Builds the worker's filter.
     *
     * @param watched whether the watcher decides on system calls that the filter does not allow; else they fail with
     *     EPERM.
     * @param sockets whether the worker may make sockets of IP.
     * @param rdmaDevice descriptor of an RDMA device's commands, to which requests are allowed; -1 for none.
     */
    static Filter of(boolean watched, boolean sockets, int rdmaDevice) {
        Filter filter = new Filter(watched ? NOTIFY : ERRNO | EPERM);
        filter.load(ARCHITECTURE_OFFSET);
        filter.skipIfEqual(AUDIT_ARCH_X86_64, 1);
        filter.give(KILL);
        filter.load(NUMBER_OFFSET);
        filter.skipIfBelow(X32_BIT, 1);
        filter.give(KILL);
        for (SystemCall call : SystemCall.values()) {
            if (call.needsNetwork() && !sockets) {
                continue;
            }
            Filter body = new Filter(filter.refusal);
            if (call == SystemCall.IOCTL && rdmaDevice >= 0) {
                Rule.allowRequestsTo(rdmaDevice, body);
            }
            call.rule().write(body);
            filter.skipUnlessEqual(call.number(), body.program.size());
            filter.program.addAll(body.program);
        }
        // clone3 passes its flags in memory, where the filter cannot see them. On ENOSYS, C libraries fall back to
        // clone.
        filter.skipUnlessEqual(CLONE3, 1);
        filter.give(ERRNO | ENOSYS);
        for (int deadly : DEADLY) {
            filter.skipUnlessEqual(deadly, 1);
            filter.give(KILL);
        }
        filter.refuse();
        return filter;
    }

    static int argumentOffset(int argument) {
        return ARGUMENTS_OFFSET + argument * Long.BYTES; // the lower half of the argument
    }

    void load(int offset) {
        add(LOAD_WORD, 0, 0, offset);
    }

    void give(int answer) {
        add(RETURN, 0, 0, answer);
    }

    void refuse() {
        give(refusal);
    }

    void allowIfEqual(int value) {
        add(JUMP_EQUAL, 0, 1, value);
        give(ALLOW);
    }

    void allowIfSet(int bits) {
        add(JUMP_SET, 0, 1, bits);
        give(ALLOW);
    }

    /** The comparison is unsigned. */
    void allowIfBelow(int value) {
        add(JUMP_NOT_BELOW, 1, 0, value);
        give(ALLOW);
    }

    void skipIfEqual(int value, int instructions) {
        add(JUMP_EQUAL, instructions, 0, value);
    }

    void skipUnlessEqual(int value, int instructions) {
        add(JUMP_EQUAL, 0, instructions, value);
    }

    /** The comparison is unsigned. */
    void skipIfBelow(int value, int instructions) {
        add(JUMP_NOT_BELOW, 0, instructions, value);
    }

    void shiftRight(int bits) {
        add(SHIFT_RIGHT, 0, 0, bits);
    }

    void mask(int bits) {
        add(AND, 0, 0, bits);
    }

    private void add(short code, int ifTrue, int ifFalse, int constant) {
        if (ifTrue > 255 || ifFalse > 255 || program.size() == MAX_INSTRUCTIONS) {
            throw new IllegalStateException("a jump must skip at most 255 instructions and a filter must have at most "
                + MAX_INSTRUCTIONS + ": at=" + program.size());
        }
        program.add(new long[] {code, ifTrue, ifFalse, constant});
    }

    /** Number of instructions. */
    int size() {
        return program.size();
    }

    /**
     * Evaluates the filter as the kernel does, for tests.
     *
     * @return the filter's result.
     */
    int answer(int architecture, int number, long... arguments) {
        int accumulator = 0;
        for (int at = 0;; at++) {
            long[] step = program.get(at);
            int constant = (int) step[3];
            switch ((short) step[0]) {
                case LOAD_WORD -> accumulator = word(architecture, number, arguments, constant);
                case AND -> accumulator &= constant;
                case SHIFT_RIGHT -> accumulator >>>= constant;
                case JUMP_EQUAL -> at += (int) (accumulator == constant ? step[1] : step[2]);
                case JUMP_SET -> at += (int) ((accumulator & constant) != 0 ? step[1] : step[2]);
                case JUMP_NOT_BELOW -> at += (int) (Integer.compareUnsigned(accumulator, constant) >= 0 ? step[1]
                    : step[2]);
                case RETURN -> {
                    return constant;
                }
                default -> throw new IllegalStateException("an instruction must be known: code=" + step[0]);
            }
        }
    }

    private static int word(int architecture, int number, long[] arguments, int offset) {
        if (offset < ARGUMENTS_OFFSET) {
            return offset == NUMBER_OFFSET ? number : architecture;
        }
        int argument = (offset - ARGUMENTS_OFFSET) / Long.BYTES;
        long value = argument < arguments.length ? arguments[argument] : 0;
        return (int) (offset % Long.BYTES == 0 ? value : value >>> 32);
    }

    /** The kernel's form: {@code struct sock_fprog} and the instructions that it points to. */
    MemorySegment encode(Arena arena) {
        MemorySegment instructions = arena.allocate((long) program.size() * INSTRUCTION_BYTES, Long.BYTES);
        for (int i = 0; i < program.size(); i++) {
            long[] step = program.get(i);
            long at = (long) i * INSTRUCTION_BYTES;
            instructions.set(ValueLayout.JAVA_SHORT, at, (short) step[0]);
            instructions.set(ValueLayout.JAVA_BYTE, at + 2, (byte) step[1]);
            instructions.set(ValueLayout.JAVA_BYTE, at + 3, (byte) step[2]);
            instructions.set(ValueLayout.JAVA_INT, at + 4, (int) step[3]);
        }
        MemorySegment header = arena.allocate(PROGRAM_BYTES, Long.BYTES);
        header.set(ValueLayout.JAVA_SHORT, 0, (short) program.size());
        header.set(ValueLayout.ADDRESS, 8, instructions);
        return header;
    }
}
