package io.hawser.hypervisor.domain;

/** The description of a domain that a change applies to. */
public enum Scope {
    /** The running domain, until it ends. */
    LIVE,
    /** The definition, from the next start on. */
    CONFIG,
    /** Both; fails when the domain does not run or has no definition. */
    BOTH
}
