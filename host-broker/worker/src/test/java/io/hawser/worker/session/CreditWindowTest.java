package io.hawser.worker.session;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;

class CreditWindowTest {
    private final CreditWindow credit = new CreditWindow(1000);

    @Test
    void shouldRefuseOverdraftOfReportedCredit() {
        assertTrue(credit.charge(1000));
        assertFalse(credit.charge(1));
        credit.release(500);
        assertFalse(credit.charge(1), "released, but not reported to the guest yet");
        assertEquals(500, credit.report());
        assertTrue(credit.charge(500));
        assertFalse(credit.charge(1));
    }

    @Test
    void shouldReportAtQuarterOfWindow() {
        assertTrue(credit.charge(400));
        credit.release(249);
        assertFalse(credit.isReportDue());
        credit.release(1);
        assertTrue(credit.isReportDue());
    }

    @Test
    void shouldReportAnyReleaseWhenReportedCreditIsBelowHalf() {
        assertTrue(credit.charge(501));
        assertFalse(credit.isReportDue());
        credit.release(1);
        assertTrue(credit.isReportDue());
        credit.report();
        assertFalse(credit.isReportDue());
    }

    @Test
    void shouldNotReleaseMoreThanWasCharged() {
        assertTrue(credit.charge(10));
        assertThrows(IllegalStateException.class, () -> credit.release(11));
    }
}
