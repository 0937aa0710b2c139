package io.hawser.gpu.software.compile;

import java.util.ArrayList;
import java.util.List;

/** Straight-line code and the end that selects the next block. */
final class Block {
    /** How a block ends. */
    sealed interface Term {
        /** Always goes to the same block. */
        record Jump(Block to) implements Term {}

        /** Goes to {@code yes} if the predicate holds (if it does not hold, when negated), else to {@code no}. */
        record Branch(VReg predicate, boolean negated, Block yes, Block no) implements Term {}

        /** brx.idx. */
        record Switch(Src index, List<Block> targets) implements Term {}

        /** Waits, then continues with the next block. */
        record Suspend(Ins op, Block next) implements Term {}

        /** Ends a kernel's thread. */
        record Exit() implements Term {}

        /** Returns from a function with the result, or with null. */
        record Return(Src result) implements Term {}

        /** Unreachable: the last instruction throws. */
        record Never() implements Term {}
    }

    final int id;
    final List<Ins> code = new ArrayList<>();
    Term term;

    Block(int id) {
        this.id = id;
    }

    /** Successors that execution reaches without a wait. */
    List<Block> successors() {
        return switch (term) {
            case Term.Jump j -> List.of(j.to());
            case Term.Branch b -> List.of(b.yes(), b.no());
            case Term.Switch s -> s.targets();
            case Term.Suspend s -> List.of();
            case Term.Exit e -> List.of();
            case Term.Return r -> List.of();
            case Term.Never n -> List.of();
        };
    }

    /** All successors. */
    List<Block> allSuccessors() {
        return term instanceof Term.Suspend s ? List.of(s.next()) : successors();
    }

    /** Registers that the end of the block reads. */
    List<VReg> termUses() {
        return switch (term) {
            case Term.Branch b -> List.of(b.predicate());
            case Term.Switch s when s.index() instanceof Src.R r -> List.of(r.reg());
            case Term.Suspend s -> s.op().uses;
            case Term.Return r when r.result() instanceof Src.R reg -> List.of(reg.reg());
            default -> List.of();
        };
    }

    int weight() {
        int weight = 12;
        for (Ins ins : code) {
            weight += ins.weight();
        }
        return weight;
    }

    @Override
    public String toString() {
        return "B" + id;
    }
}
