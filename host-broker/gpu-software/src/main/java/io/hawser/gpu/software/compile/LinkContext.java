package io.hawser.gpu.software.compile;

import io.hawser.gpu.software.ptx.Statement;
import java.util.List;

/**
 * Gives lowering its facts about other functions. {@link #CHECK} has none, because it checks a module before linking.
 */
interface LinkContext {
    /** Serves the check of a module before it is linked. */
    LinkContext CHECK = new LinkContext() {
        @Override
        public FunctionRef resolve(ModuleScope scope, String name) {
            return null;
        }

        @Override
        public boolean mustExpand(FunctionRef function) {
            return false;
        }

        @Override
        public List<FunctionRef> candidates(Statement.Prototype prototype) {
            return List.of();
        }
    };

    /** The definition of a name; null for a built-in function, or when nothing is linked. */
    FunctionRef resolve(ModuleScope scope, String name);

    /** Whether calls of the function must be expanded in place, because it waits for other threads. */
    boolean mustExpand(FunctionRef function);

    /** The functions that an indirect call may reach. */
    List<FunctionRef> candidates(Statement.Prototype prototype);
}
