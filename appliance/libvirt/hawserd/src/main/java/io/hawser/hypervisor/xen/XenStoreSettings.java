package io.hawser.hypervisor.xen;

import io.hawser.hypervisor.domain.HypervisorException;
import io.hawser.hypervisor.domain.HypervisorException.Reason;
import io.hawser.hypervisor.domain.XenGuestSettings;
import io.hawser.hypervisor.model.GuestSettings;
import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * Guests' settings in XenStore: {@code /local/domain/ID/vm-data/hawser/{carrier,broker,token,ca}}. One transaction
 * writes them, so a guest sees all or none. No other domain can read them.
 */
public final class XenStoreSettings implements XenGuestSettings {
    private static final Duration TIMEOUT = Duration.ofSeconds(5);

    private final Path socket;
    private final Duration timeout;

    /** Uses this machine's xenstored. */
    public XenStoreSettings() {
        this(XenStore.SOCKET, TIMEOUT);
    }

    /** Uses the xenstored that listens at the given socket. */
    public XenStoreSettings(Path socket, Duration timeout) {
        this.socket = socket;
        this.timeout = timeout;
    }

    @Override
    public void put(int domainId, GuestSettings settings) {
        if (domainId <= 0) {
            throw new HypervisorException(Reason.NOT_RUNNING,
                "only running Xen domains get settings: id=" + domainId);
        }
        Map<String, String> values = new LinkedHashMap<>();
        values.put("carrier", settings.carrier());
        values.put("broker", settings.broker());
        values.put("token", settings.token());
        if (!settings.ca().isEmpty()) {
            values.put("ca", settings.ca());
        }
        use(store -> store.inTransaction(() -> {
            // After a domain's end its settings would stay, and a later domain of that number could read them.
            if (store.read(folderOf(domainId) + "/name").isEmpty()) {
                throw new HypervisorException(Reason.NO_DOMAIN, "Xen has no domain " + domainId);
            }
            String folder = folderOf(domainId) + "/vm-data/hawser";
            store.remove(folder); // removes old values, and permissions that other clients have set
            store.write(folder, "");
            store.permit(folder, domainId);
            for (Map.Entry<String, String> value : values.entrySet()) {
                String path = folder + "/" + value.getKey();
                store.write(path, "");
                store.permit(path, domainId);
                store.write(path, value.getValue());
            }
        }));
    }

    @Override
    public void remove(int domainId) {
        if (domainId > 0) {
            use(store -> store.remove(folderOf(domainId) + "/vm-data/hawser"));
        }
    }

    private static String folderOf(int domainId) {
        return "/local/domain/" + domainId;
    }

    /** Work on a connection. */
    @FunctionalInterface
    private interface Task {
        void run(XenStore store) throws IOException;
    }

    private void use(Task task) {
        try (XenStore store = XenStore.connect(socket, timeout)) {
            task.run(store);
        } catch (XenStoreException e) {
            throw new HypervisorException(Reason.REFUSED, e.getMessage(), e);
        } catch (IOException e) {
            throw new HypervisorException(Reason.DISCONNECTED, "XenStore is not available at " + socket + ": "
                + e.getMessage(), e);
        }
    }
}
