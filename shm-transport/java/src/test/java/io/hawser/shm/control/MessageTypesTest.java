package io.hawser.shm.control;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;

import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

class MessageTypesTest {
    @Test
    void shouldKeepTheNamesOfTheBrokersMessages() {
        assertEquals(List.of("assign", "ledger", "turns", "turnbell", "doorbell", "descriptors", "watching", "store",
            "image", "noimage", "shared", "unshared", "found", "notfound", "keep", "keepfor", "keeper", "swapout",
            "swapin", "swapfreeze", "checkpoint", "restore", "stripe", "mover", "moveside", "moveout", "movein",
            "movelink", "movestream",
            "moveend", "end"),
            Stream.of(BrokerMessageType.values()).map(BrokerMessageType::wireName).toList());
    }

    @Test
    void shouldKeepTheNamesOfTheWorkersMessages() {
        assertEquals(List.of("ready", "jailed", "stats", "lost", "ended", "image", "stored", "want",
            "unfit", "share", "unshare", "find", "release", "swappedout", "swappedin", "swapwanted",
            "swapmoved", "kept", "swapfrozen", "processmoved", "carried", "moveready", "movedin"),
            Stream.of(WorkerMessageType.values()).map(WorkerMessageType::wireName).toList());
    }

    @Test
    void shouldFindEachTypeByItsName() {
        for (BrokerMessageType type : BrokerMessageType.values()) {
            assertEquals(type, BrokerMessageType.of(type.wireName()));
        }
        for (WorkerMessageType type : WorkerMessageType.values()) {
            assertEquals(type, WorkerMessageType.of(type.wireName()));
        }
        assertNull(BrokerMessageType.of("ready"));
        assertNull(WorkerMessageType.of("assign"));
    }
}
