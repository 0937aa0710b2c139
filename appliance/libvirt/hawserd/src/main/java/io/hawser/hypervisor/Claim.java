package io.hawser.hypervisor;

import java.util.List;
import java.util.Optional;
import java.util.UUID;

/**
 * What the broker has for a domain.
 *
 * @param vgpu its name at the broker.
 * @param owner whose it is.
 * @param sessions that it has now.
 * @param tokens of the vGPU; how many.
 * @param state as the broker has it: {@code placed}, or why not.
 * @param problem why guests cannot use it; empty when they can.
 */
record Claim(String vgpu, Owner owner, long memoryBytes, int share, String mode, String gpus, List<String> carriers,
    int maxSessions, int sessions, int tokens, String state, String problem) {

    /**
     * A vGPU's owner at the broker, {@code <domain>@<host>}. While a domain migrates both hosts stand there,
     * {@code <domain>@<destination>+<source>}: whichever of the two loses the domain takes itself out, so that the
     * other has it, whatever becomes of the migration.
     *
     * @param host UUID of the host that it belongs to.
     * @param former UUID of the host that it comes from; empty outside of a migration.
     */
    record Owner(UUID domain, String host, String former) {
        /** As the broker keeps it. */
        String id() {
            return domain + "@" + host + (former.isEmpty() ? "" : "+" + former);
        }

        /** Whether a host has a say in it. */
        boolean concerns(String host) {
            return this.host.equals(host) || former.equals(host);
        }

        /** What an id says; empty when it is not of a hawserd. */
        static Optional<Owner> parse(String kind, String id) {
            String[] parts = id.split("[@+]", -1);
            boolean ours = kind.equals("domain") && (parts.length == 2 || parts.length == 3 && id.indexOf('+') > 0)
                && id.indexOf('@') == parts[0].length();
            try {
                return ours && !parts[1].isEmpty()
                    ? Optional.of(new Owner(UUID.fromString(parts[0]), parts[1], parts.length == 3 ? parts[2] : ""))
                    : Optional.empty();
            } catch (IllegalArgumentException e) {
                return Optional.empty(); // an operator's own name for an owner
            }
        }
    }

    /** Whether it is what the wish asks for; its name aside, which cannot change. */
    boolean fits(Wish wish) {
        return memoryBytes == wish.memoryBytes() && share == wish.share() && mode.equals(wish.mode().label())
            && gpus.equalsIgnoreCase(wish.gpus().replace(" ", "")) && maxSessions == wish.sessions()
            && carriers.equals(List.of(wish.transport().label()));
    }
}
