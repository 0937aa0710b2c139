package io.hawser.broker.swap;

import static org.junit.jupiter.api.Assertions.fail;

/** A session whose context always stays on the GPU. */
abstract class ShallowSeat implements Residency.Seat {
    @Override
    public void freeze() {
        fail("it must not leave wholly");
    }

    @Override
    public void thaw() {
        fail("it is not frozen");
    }

    @Override
    public void sink() {
        fail("it must not leave wholly");
    }

    @Override
    public void rise() {
        fail("it has not left wholly");
    }
}
