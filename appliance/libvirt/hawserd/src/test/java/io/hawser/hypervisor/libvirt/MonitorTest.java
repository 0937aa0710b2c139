package io.hawser.hypervisor.libvirt;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import io.hawser.hypervisor.domain.HypervisorException;
import java.util.OptionalLong;
import org.junit.jupiter.api.Test;

class MonitorTest {
    // An answer of QEMU 7.2, without irrelevant fields.
    private static final String DEVICE = """
        {"bus":1,"qdev_id":"%s","slot":0,"regions":[
        {"prefetch":false,"mem_type_64":false,"bar":0,"size":256,"address":4265607168,"type":"memory"},
        {"prefetch":true,"mem_type_64":true,"bar":2,"size":67108864,"address":%d,"type":"memory"}]}""";

    private static String answer(String devices, String behindPort) {
        return """
            {"return":[{"bus":0,"devices":[{"bus":0,"qdev_id":"","slot":0,"regions":[]}%s,
            {"bus":0,"qdev_id":"pci.1","slot":1,"regions":[],"pci_bridge":{"bus":{"number":0},"devices":[%s]}}]}],
            "id":"libvirt-416"}""".formatted(devices, behindPort);
    }

    @Test
    void shouldFindTheAddressOnTheFirstBusAndBehindAPort() {
        assertEquals(OptionalLong.of(4294967296L),
            Monitor.bar(answer("," + DEVICE.formatted("ua-hawser", 4294967296L), ""), "ua-hawser", 2));
        assertEquals(OptionalLong.of(4160749568L), Monitor.bar(answer("," + DEVICE.formatted("other", 77L),
            DEVICE.formatted("ua-hawser", 4160749568L)), "ua-hawser", 2));
    }

    @Test
    void shouldKnowADeviceThatHasNoAddress() {
        assertEquals(OptionalLong.empty(), Monitor.bar(answer("", DEVICE.formatted("ua-hawser", -1L)), "ua-hawser", 2));
        assertEquals(OptionalLong.empty(), Monitor.bar(answer("", DEVICE.formatted("other", 5L)), "ua-hawser", 2));
        assertEquals(OptionalLong.empty(), Monitor.bar("{\"error\":{\"class\":\"GenericError\"}}", "ua-hawser", 2));
    }

    @Test
    void shouldRejectAnswersThatAreNotJson() {
        String whole = answer("", DEVICE.formatted("ua-hawser", 5L));
        for (int length = 0; length < whole.length(); length++) {
            String cut = whole.substring(0, length);
            assertThrows(HypervisorException.class, () -> Monitor.bar(cut, "ua-hawser", 2), cut);
        }
    }
}
