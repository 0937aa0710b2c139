package io.hawser.gpu.software.compile;

import io.hawser.gpu.software.ptx.Statement;
import java.util.List;

/** What lowering asks about other functions. While a module is only checked, nothing is known of them. */
interface LinkContext {
    /** Answers for a module that is checked before it is linked. */
    LinkContext CHECK = new LinkContext() {
        @Override
        public FunctionRef resolve(ModuleScope scope, String name) {
            return null;
        }

        @Override
        public boolean inline(FunctionRef function) {
            return false;
        }

        @Override
        public List<FunctionRef> candidates(Statement.Prototype prototype) {
            return List.of();
        }
    };

    /** The definition behind a name, or null for a built-in function (or when nothing is linked). */
    FunctionRef resolve(ModuleScope scope, String name);

    /** Whether calls of it must be expanded in place, because it waits for other threads. */
    boolean inline(FunctionRef function);

    /** The functions that an indirect call may reach. */
    List<FunctionRef> candidates(Statement.Prototype prototype);
}
