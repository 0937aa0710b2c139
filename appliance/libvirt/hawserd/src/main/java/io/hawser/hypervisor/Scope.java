package io.hawser.hypervisor;

/** Which of a domain's two descriptions a change is for. */
public enum Scope {
    /** The running domain, until it ends. */
    LIVE,
    /** The definition, from the next start on. */
    CONFIG,
    /** Both; fails when the domain does not run or has no definition. */
    BOTH
}
