package io.hawser.gpu.software.compile;

import java.util.BitSet;

/** Allocates places among a thread's saved ints and longs to the registers that live across a wait or a cut. */
final class SavedSlots {
    final int ints;
    final int longs;

    SavedSlots(Code code, Liveness liveness, Regions regions) {
        int nextInt = 0;
        int nextLong = 0;
        for (Regions.Region region : regions.all) {
            if (region.number == 0) {
                continue;
            }
            BitSet live = liveness.in(region.entry);
            for (int id = live.nextSetBit(0); id >= 0; id = live.nextSetBit(id + 1)) {
                VReg register = code.registers.get(id);
                if (register.savedSlot < 0) {
                    register.savedSlot = register.width() == 2 ? nextLong++ : nextInt++;
                }
            }
        }
        ints = nextInt;
        longs = nextLong;
    }
}
