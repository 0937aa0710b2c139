package io.hawser.system;

import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;
import java.time.Instant;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.extension.ConditionEvaluationResult;
import org.junit.jupiter.api.extension.ExecutionCondition;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.extension.ExtensionContext;

/**
 * Marks a class of several minutes, which runs after the others. CI ends after a fixed time, so it sets a time after
 * which no such class begins: seconds since 1970 in the variable {@value WhileTimeIsLeft#UNTIL}. The class then counts
 * as skipped, and the build names it. Without the variable all classes run.
 */
@Target(ElementType.TYPE)
@Retention(RetentionPolicy.RUNTIME)
@Order(Integer.MAX_VALUE)
@ExtendWith(LongTests.WhileTimeIsLeft.class)
@interface LongTests {
    /** Skips the class after the time. */
    final class WhileTimeIsLeft implements ExecutionCondition {
        static final String UNTIL = "HAWSER_LONG_TESTS_UNTIL";

        @Override
        public ConditionEvaluationResult evaluateExecutionCondition(ExtensionContext context) {
            String until = System.getenv(UNTIL);
            if (until == null || until.isBlank() || context.getTestMethod().isPresent()) {
                return ConditionEvaluationResult.enabled("no time is set, or the class has begun");
            }
            return Instant.now().getEpochSecond() < Long.parseLong(until.strip())
                ? ConditionEvaluationResult.enabled("time is left")
                : ConditionEvaluationResult.disabled("SKIPPED: no time was left for it: " + UNTIL + "=" + until);
        }
    }
}
