package io.hawser.shm.ledger;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.foreign.Arena;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.Test;

/** Several concurrent users of one ledger, each of which may die at any step: the sums stay right. */
class LedgerPropertyTest {
    private static final int USERS = 8;
    private static final int OPERATIONS = 20_000; // of each user
    private static final long LIMIT = 1000;
    private static final int COLUMN = 3;

    private final Ledger ledger = new Ledger(Arena.ofAuto().allocate(LedgerLayout.bytes(USERS), Long.BYTES), USERS);
    /** Allocated memory, counted outside the ledger; grows after a claim, shrinks before a return. */
    private final AtomicLong allocated = new AtomicLong();
    private final AtomicReference<String> wrong = new AtomicReference<>();
    private final AtomicLong refused = new AtomicLong();
    private final AtomicLong deaths = new AtomicLong();

    @Test
    void shouldKeepLimitAndSumsWhenUsersDie() throws InterruptedException {
        ledger.limit(COLUMN, LIMIT, LIMIT);
        List<Thread> users = new ArrayList<>();
        for (int slot = 0; slot < USERS; slot++) {
            int own = slot;
            users.add(Thread.ofPlatform().start(() -> live(own, new Random(4711 + own))));
        }
        for (Thread user : users) {
            user.join();
        }
        assertEquals(null, wrong.get());
        assertTrue(refused.get() > 0 && deaths.get() > USERS, "the test must meet the limit, and deaths: refused="
            + refused + " deaths=" + deaths);
        assertEquals(0, ledger.usedBytes(COLUMN));
        assertEquals(0, allocated.get());
        assertEquals(0, ledger.lockWord());
    }

    /** The successive sessions of a slot; the broker clears the slot between two of them. */
    private void live(int slot, Random random) {
        LedgerAccount account = new LedgerAccount(ledger, slot);
        ArrayDeque<Long> held = new ArrayDeque<>();
        for (int i = 0; i < OPERATIONS && wrong.get() == null; i++) {
            int choice = random.nextInt(100);
            if (choice == 0) {
                die(slot, account, held, random);
                account = new LedgerAccount(ledger, slot);
            } else if (choice < 55) {
                claim(account, held, random);
            } else if (!held.isEmpty()) {
                long bytes = held.remove();
                allocated.addAndGet(-bytes);
                account.giveBack(COLUMN, bytes);
            }
            long sum = held.stream().mapToLong(Long::longValue).sum();
            if (account.heldBytes(COLUMN) != sum || ledger.heldBytes(COLUMN, slot) != sum) {
                wrong.compareAndSet(null, "slot " + slot + " holds " + sum + ", its account has "
                    + account.heldBytes(COLUMN) + ", the ledger " + ledger.heldBytes(COLUMN, slot));
            }
        }
        held.forEach(bytes -> allocated.addAndGet(-bytes));
        ledger.clear(slot);
    }

    private void claim(LedgerAccount account, ArrayDeque<Long> held, Random random) {
        long bytes = random.nextInt(400);
        if (!account.claim(COLUMN, bytes)) {
            refused.incrementAndGet();
            return;
        }
        held.add(bytes);
        long now = allocated.addAndGet(bytes);
        if (now > LIMIT) {
            wrong.compareAndSet(null, "allocated " + now + " of " + LIMIT);
        }
    }

    /** Dies at a step of a claim: before it, with the lock, or after writing a claim that is never allocated. */
    private void die(int slot, LedgerAccount account, ArrayDeque<Long> held, Random random) {
        deaths.incrementAndGet();
        long token = (long) random.nextInt(1 << 20) << LedgerLayout.SLOT_BITS | slot + 1;
        int step = random.nextInt(3);
        boolean hasLock = step > 0 && ledger.tryLock(token);
        if (step == 2) {
            ledger.setHeldBytes(COLUMN, slot, account.heldBytes(COLUMN) + random.nextInt(400));
        }
        if (hasLock) {
            Thread.yield(); // lets others meet the lock
        }
        held.forEach(bytes -> allocated.addAndGet(-bytes));
        held.clear();
        ledger.clear(slot);
        if (hasLock && ledger.lockWord() == token) {
            wrong.compareAndSet(null, "the lock of slot " + slot + " outlives it");
        }
    }
}
