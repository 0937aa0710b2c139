package io.hawser.system;

import org.junit.jupiter.api.extension.AfterAllCallback;
import org.junit.jupiter.api.extension.AfterEachCallback;
import org.junit.jupiter.api.extension.ExtensionContext;

/** The end of a test class's own broker: no session is left after a test, and the broker ends after the last test. */
final class OwnBroker implements AfterEachCallback, AfterAllCallback {
    private BrokerProcess broker; // null until it has started

    /** Takes the class's broker. Call it once, before all tests. */
    BrokerProcess keep(BrokerProcess started) {
        broker = started;
        return started;
    }

    @Override
    public void afterEach(ExtensionContext context) {
        broker.awaitIdle();
    }

    @Override
    public void afterAll(ExtensionContext context) {
        if (broker != null) {
            broker.close();
        }
    }
}
