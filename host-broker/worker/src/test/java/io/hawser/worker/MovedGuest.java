package io.hawser.worker;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.hawser.cuda.backend.BackendOptions;
import io.hawser.cuda.generated.CudaOpcodes;
import io.hawser.cuda.generated.HandleKind;
import io.hawser.cuda.generated.HwsDeviceInfo;
import io.hawser.worker.fixture.Carrier;
import io.hawser.worker.fixture.Guest;
import io.hawser.worker.fixture.Rig;
import io.hawser.worker.fixture.WorkerProcess;
import io.hawser.worker.session.DeviceArena;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.List;

/** A guest of the software GPU whose session moves. */
abstract class MovedGuest {
    static final long PAGE = DeviceArena.PAGE_BYTES;
    static final int STEPS = 7;
    /** Changes a word of memory; another kernel uses a counter that only kernels know as well. */
    private static final String CODE = """
        .version 8.0
        .target sm_80
        .address_size 64
        COUNTER
        .visible .entry step(.param .u64 out)
        {
            .reg .u32 %r<4>;
            .reg .u64 %rd<4>;
            ld.param.u64 %rd1, [out];
            cvta.to.global.u64 %rd2, %rd1;
            NUMBER
            ld.global.u32 %r2, [%rd2];
            mad.lo.u32 %r2, %r2, 31, %r1;
            st.global.u32 [%rd2], %r2;
            ret;
        }
        """;
    static final String PLAIN = CODE.replace("COUNTER", "").replace("NUMBER", "mov.u32 %r1, 1;");
    static final String COUNTING = CODE.replace("COUNTER", ".visible .global .align 4 .u32 counter;").replace("NUMBER",
        "ld.global.u32 %r1, [counter]; add.u32 %r1, %r1, 1; st.global.u32 [counter], %r1;");

    Guest guest;
    long base;
    long stream;
    private long step;

    static Rig rig(Carrier carrier, int devices) throws IOException {
        return new Rig(carrier, Backends.open("software", new BackendOptions(0, 1, devices, List.of())));
    }

    static WorkerProcess process() throws IOException {
        return new WorkerProcess("--backend", "software", "--threads", "1");
    }

    /** Gives a guest slabs, a stream and a kernel. */
    final void begin(Guest connected, String code) throws IOException {
        guest = connected;
        guest.next(); // WELCOME
        open(code);
    }

    /** As {@link #begin}, after WELCOME. */
    final void open(String code) throws IOException {
        guest.createContext();
        base = guest.call(CudaOpcodes.hwsDeviceInfo, out -> {
            out.fixed(8);
            out.i32(0, 0);
        }).i64(HwsDeviceInfo.ARENA_ADDRESS_OFFSET);
        map(base, 2 * PAGE);
        map(base + 8 * PAGE, PAGE);
        stream = guest.createStream();
        long module = guest.newId(HandleKind.MODULE);
        byte[] image = (code + "\0").getBytes(StandardCharsets.US_ASCII);
        assertEquals(0, guest.call(Guest.IMAGE_LOAD, out -> Guest.image(out, module, 0, image)).i32(0));
        step = guest.function(module, "step");
        guest.write(base, stream, new byte[4]);
    }

    /** Makes a slab and allocates all of it. */
    final void map(long address, long bytes) throws IOException {
        map(address, bytes, address);
    }

    /** Makes a slab and allocates it from an address on. */
    final void map(long address, long bytes, long from) throws IOException {
        assertEquals(0, guest.call(CudaOpcodes.hwsArenaMap, out -> {
            out.fixed(32);
            out.i32(0, 0);
            out.i64(8, address);
            out.i64(16, bytes);
            out.i32(24, 1);
        }).status());
        guest.send(CudaOpcodes.hwsArenaAllocated, 0, out -> {
            out.fixed(24);
            out.i32(0, 0);
            out.i64(8, from);
            out.i64(16, address + bytes - from);
        });
    }

    /** Launches some steps, without waiting for them. */
    final void steps() throws IOException {
        byte[] params = ByteBuffer.allocate(8).order(ByteOrder.LITTLE_ENDIAN).putLong(base).array();
        for (int i = 0; i < STEPS; i++) {
            guest.launch(step, stream, params);
        }
    }

    /** The word after so many steps; each adds 1, or the step's number. */
    static int expected(int steps, boolean isCounting) {
        int word = 0;
        for (int i = 1; i <= steps; i++) {
            word = word * 31 + (isCounting ? i : 1);
        }
        return word;
    }

    /** The word after so many steps of {@link #PLAIN}. */
    static int expected(int steps) {
        return expected(steps, false);
    }

    final int word() throws IOException {
        return ByteBuffer.wrap(guest.read(base, 4, stream)).order(ByteOrder.LITTLE_ENDIAN).getInt();
    }
}
