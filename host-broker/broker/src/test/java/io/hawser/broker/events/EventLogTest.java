package io.hawser.broker.events;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.Test;

class EventLogTest {
    private final AtomicLong nowNs = new AtomicLong(TimeUnit.DAYS.toNanos(1));
    private final EventLog log = new EventLog(nowNs::get);

    private void add(Event.Kind kind, String text) {
        log.add(kind, Event.Severity.INFO, "v", 7, text);
    }

    @Test
    void shouldKeepTheNewestOfEachKindAndCountUp() {
        add(Event.Kind.GPU, "rare");
        for (int i = 0; i < EventLog.KEPT_OF_A_KIND + 10; i++) {
            nowNs.addAndGet(TimeUnit.SECONDS.toNanos(1));
            log.take();
            add(Event.Kind.SESSION, "session " + i);
        }
        log.take();
        List<Event> all = log.latest(1000);
        assertEquals(EventLog.KEPT_OF_A_KIND + 1, all.size());
        assertEquals("session " + (EventLog.KEPT_OF_A_KIND + 9), all.getFirst().text());
        assertEquals("rare", all.getLast().text());
        assertEquals(EventLog.KEPT_OF_A_KIND + 11, all.getFirst().seq());
        assertEquals(2, log.latest(2).size());
        assertEquals(new Event(all.getFirst().seq(), all.getFirst().time(), "session", "info", "v", 7,
            all.getFirst().text()), all.getFirst());
    }

    @Test
    void shouldCutAFloodOfOneKindToACountAndLeaveTheOthers() {
        for (int i = 0; i < 100; i++) {
            add(Event.Kind.REFUSED, "refused " + i);
        }
        add(Event.Kind.WORKER, "failed");
        assertEquals(EventLog.EACH_SECOND + 1, log.take().size());
        assertEquals(List.of(), log.take());
        nowNs.addAndGet(TimeUnit.SECONDS.toNanos(1));
        List<Event> after = log.take();
        assertEquals(1, after.size());
        assertTrue(after.getFirst().text().contains("80 more"), after.getFirst().text());
        add(Event.Kind.REFUSED, "one more");
        assertEquals("one more", log.take().getFirst().text());
    }

    @Test
    void shouldBoundWhatNobodyTakes() {
        for (int i = 0; i < EventLog.MAX_PENDING + 5; i++) {
            add(Event.Kind.values()[i % Event.Kind.values().length], "x");
        }
        assertTrue(log.take().stream().anyMatch(e -> e.text().startsWith("5 events came faster")));
    }

    @Test
    void shouldShowNothingThatDrivesATerminalAndCutWhatIsLong() {
        add(Event.Kind.SESSION, "a\u001b[31m\n" + "x".repeat(1000));
        String text = log.take().getFirst().text();
        assertEquals(EventLog.MAX_TEXT_CHARACTERS, text.length());
        assertTrue(text.startsWith("a?[31m?x"), text);
    }
}
