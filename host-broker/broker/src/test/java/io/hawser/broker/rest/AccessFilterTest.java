package io.hawser.broker.rest;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.hawser.broker.access.Answer;
import io.hawser.broker.access.Anyone;
import io.hawser.broker.access.Identity;
import io.hawser.broker.access.Needs;
import io.hawser.broker.access.Role;
import jakarta.ws.rs.container.ResourceInfo;
import jakarta.ws.rs.core.Response;
import java.lang.reflect.Method;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.junit.jupiter.api.Test;

/** The roles that the filter admits to an operation. */
class AccessFilterTest {
    private static final String NOBODY = "nobody";

    /** Operations as openapi.yml could describe them. */
    interface Operations {
        @Anyone
        void open();

        @Needs(Role.VIEWER)
        void read();

        @Needs(Role.OPERATOR)
        void change();

        @Needs(Role.ADMIN)
        void audit();

        void forgotten();
    }

    /** The resource that implements the operations. */
    static final class Resource implements Operations {
        @Override
        public void open() {
        }

        @Override
        public void read() {
        }

        @Override
        public void change() {
        }

        @Override
        public void audit() {
        }

        @Override
        public void forgotten() {
        }

        /** A method that is no operation of the contract. */
        public void stray() {
        }
    }

    private static List<String> letThrough(String operation) throws NoSuchMethodException {
        Method method = Resource.class.getMethod(operation);
        Map<String, Role> callers = new TreeMap<>();
        Arrays.stream(Role.values()).forEach(role -> callers.put(role.label(), role));
        callers.put(NOBODY, null);
        return callers.entrySet().stream().filter(caller -> {
            AccessFilter filter = new AccessFilter();
            filter.caller = new Caller();
            if (caller.getValue() != null) {
                filter.caller.set(new Answer.Known(new Identity(caller.getKey(), caller.getValue(), Identity.Via.TOKEN),
                    () -> true));
            }
            Response refused = filter.role(new ResourceInfo() {
                @Override
                public Method getResourceMethod() {
                    return method;
                }

                @Override
                public Class<?> getResourceClass() {
                    return Resource.class;
                }
            });
            assertEquals(refused == null ? 0 : Response.Status.FORBIDDEN.getStatusCode(),
                refused == null ? 0 : refused.getStatus());
            return refused == null;
        }).map(Map.Entry::getKey).toList();
    }

    @Test
    void shouldAskForTheRoleThatAnOperationNeeds() throws NoSuchMethodException {
        assertEquals(List.of("admin", NOBODY, "operator", "viewer"), letThrough("open"));
        assertEquals(List.of("admin", "operator", "viewer"), letThrough("read"));
        assertEquals(List.of("admin", "operator"), letThrough("change"));
        assertEquals(List.of("admin"), letThrough("audit"));
    }

    @Test
    void shouldKeepAnOperationThatNamesNoRoleForTheAdmin() throws NoSuchMethodException {
        assertEquals(List.of("admin"), letThrough("forgotten"));
        assertEquals(List.of("admin"), letThrough("stray"));
    }
}
