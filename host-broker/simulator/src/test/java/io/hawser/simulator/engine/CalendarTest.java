package io.hawser.simulator.engine;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.Random;
import org.junit.jupiter.api.Test;

class CalendarTest {
    @Test
    void shouldGiveTheLeastTimeAfterAnyChanges() {
        Random random = new Random(1);
        Calendar calendar = new Calendar();
        long[] times = new long[100];
        assertEquals(Calendar.NEVER, calendar.firstTimeNs());
        for (int i = 0; i < times.length; i++) {
            assertEquals(i, calendar.add());
            times[i] = Calendar.NEVER;
        }
        for (int i = 0; i < 20_000; i++) {
            int number = random.nextInt(times.length);
            times[number] = random.nextInt(10) == 0 ? Calendar.NEVER : random.nextInt(50);
            calendar.set(number, times[number]);
            int first = 0;
            for (int j = 1; j < times.length; j++) {
                first = times[j] < times[first] ? j : first;
            }
            assertEquals(times[first], calendar.firstTimeNs());
            assertEquals(first, calendar.first());
        }
    }
}
