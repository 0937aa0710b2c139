package io.hawser.simulator.engine;

import java.util.Arrays;

/**
 * The next times of numbered things: a binary heap in which each thing has one time, which may change. Things with
 * equal times come by their numbers. Allocates only when it grows.
 */
final class Calendar {
    static final long NEVER = Long.MAX_VALUE;

    private long[] times = new long[0]; // by number
    private int[] places = new int[0]; // in the heap, by number
    private int[] heap = new int[0];
    private int size;

    /** Adds a thing with the next number and no time. */
    int add() {
        if (size == heap.length) {
            int capacity = Math.max(16, 2 * size);
            times = Arrays.copyOf(times, capacity);
            places = Arrays.copyOf(places, capacity);
            heap = Arrays.copyOf(heap, capacity);
        }
        times[size] = NEVER;
        places[size] = size;
        heap[size] = size;
        return size++;
    }

    /** Sets the time of a thing. */
    void set(int number, long timeNs) {
        long before = times[number];
        times[number] = timeNs;
        if (timeNs < before) {
            rise(places[number]);
        } else if (timeNs > before) {
            sink(places[number]);
        }
    }

    /** Number of the thing with the least time; there must be one. */
    int first() {
        return heap[0];
    }

    /** The least time; {@link #NEVER} without things that have a time. */
    long firstTimeNs() {
        return size == 0 ? NEVER : times[heap[0]];
    }

    private boolean isBefore(int one, int other) {
        return times[one] < times[other] || times[one] == times[other] && one < other;
    }

    private void rise(int from) {
        int place = from;
        while (place > 0 && isBefore(heap[place], heap[(place - 1) / 2])) {
            swap(place, (place - 1) / 2);
            place = (place - 1) / 2;
        }
    }

    private void sink(int from) {
        int place = from;
        while (2 * place + 1 < size) {
            int child = 2 * place + 1;
            if (child + 1 < size && isBefore(heap[child + 1], heap[child])) {
                child++;
            }
            if (!isBefore(heap[child], heap[place])) {
                return;
            }
            swap(place, child);
            place = child;
        }
    }

    private void swap(int one, int other) {
        int number = heap[one];
        heap[one] = heap[other];
        heap[other] = number;
        places[heap[one]] = one;
        places[heap[other]] = other;
    }
}
