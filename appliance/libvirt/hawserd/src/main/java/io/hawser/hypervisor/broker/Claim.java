package io.hawser.hypervisor.broker;

import io.hawser.hypervisor.model.Wish;
import java.util.List;
import java.util.Optional;
import java.util.UUID;

/**
 * A domain's vGPU at the broker.
 *
 * @param vgpu its name at the broker.
 * @param owner the host or hosts that may change it.
 * @param sessions number of present sessions.
 * @param tokens number of tokens.
 * @param state the broker's state: {@code placed}, or the reason why not.
 * @param problem why guests cannot use it; empty if they can.
 * @param rdma whether its sessions may use RDMA.
 */
public record Claim(String vgpu, Owner owner, long memoryBytes, int share, String mode, String gpus,
    boolean swappable, List<String> carriers, int maxSessions, int sessions, int tokens, String state, String problem,
    boolean rdma) {

    /**
     * The owner of a vGPU at the broker, {@code <domain>@<host>}. During a migration the id names both hosts: {@code
     * <domain>@<destination>+<source>}. The host that loses the domain removes its own name, so the other host keeps
     * the vGPU whether the migration succeeds or fails.
     *
     * @param host UUID of the owning host.
     * @param former UUID of the host that the domain leaves; empty outside of a migration.
     */
    public record Owner(UUID domain, String host, String former) {
        /** The form in which the broker stores it. */
        public String id() {
            return domain + "@" + host + (former.isEmpty() ? "" : "+" + former);
        }

        /** Whether a host is one of the owner's hosts. */
        public boolean concerns(String host) {
            return this.host.equals(host) || former.equals(host);
        }

        /** Parses an owner's id; empty if no hawserd wrote the id. */
        public static Optional<Owner> parse(String kind, String id) {
            String[] parts = id.split("[@+]", -1);
            boolean ours = kind.equals("domain") && (parts.length == 2 || parts.length == 3 && id.indexOf('+') > 0)
                && id.indexOf('@') == parts[0].length();
            try {
                return ours && !parts[1].isEmpty()
                    ? Optional.of(new Owner(UUID.fromString(parts[0]), parts[1], parts.length == 3 ? parts[2] : ""))
                    : Optional.empty();
            } catch (IllegalArgumentException e) {
                return Optional.empty(); // an id that an operator chose
            }
        }
    }

    /** Whether it has the wish's properties. The name does not count, because a name cannot change. */
    public boolean fits(Wish wish) {
        return memoryBytes == wish.memoryBytes() && share == wish.share() && mode.equals(wish.mode().label())
            && swappable == wish.swappable() && gpus.equalsIgnoreCase(wish.gpus().replace(" ", ""))
            && maxSessions == wish.sessions()
            && carriers.equals(List.of(wish.carrier())) && rdma == (wish.transport() == Wish.Transport.RDMA);
    }
}
