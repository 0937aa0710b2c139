package io.hawser.floors;

import com.tngtech.archunit.core.domain.Dependency;
import com.tngtech.archunit.core.domain.JavaClass;
import com.tngtech.archunit.core.domain.JavaClasses;
import com.tngtech.archunit.core.importer.ClassFileImporter;
import com.tngtech.archunit.core.importer.ImportOption;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.TreeSet;

/**
 * The floors of a module's packages, from the lowest. A package may use only packages on lower floors, so no cycle of
 * packages is possible, and packages on one floor are independent. The check reads compiled classes without tests.
 */
public final class Floors {
    private final String root;
    private final Map<String, Integer> floorByPackage = new LinkedHashMap<>();
    private int floors;

    private Floors(String root) {
        this.root = root;
    }

    /**
     * Begins with no floor.
     *
     * @param root package of the module, for example {@code io.hawser.broker}.
     */
    public static Floors of(String root) {
        return new Floors(root);
    }

    /**
     * Adds the next higher floor.
     *
     * @param packages relative to the root; the empty string is the root itself.
     * @throws IllegalArgumentException if a package has a floor already.
     */
    public Floors floor(String... packages) {
        floors++;
        for (String name : packages) {
            if (floorByPackage.putIfAbsent(name, floors) != null) {
                throw new IllegalArgumentException("a package must have one floor: package=" + name);
            }
        }
        return this;
    }

    /**
     * Checks the packages of the root that are on the class path.
     *
     * @throws AssertionError with a line for each violation: a use of the same floor or a higher one, a package without
     *     a floor, or a floor's package without a class.
     */
    public void check() {
        check(new ClassFileImporter().withImportOption(ImportOption.Predefined.DO_NOT_INCLUDE_TESTS));
    }

    /** The same check, which reads the classes of tests too. */
    void checkWithTests() {
        check(new ClassFileImporter());
    }

    private void check(ClassFileImporter importer) {
        JavaClasses classes = importer.importPackages(root);
        TreeSet<String> violations = new TreeSet<>();
        TreeSet<String> seen = new TreeSet<>();
        for (JavaClass used : classes) {
            String name = relative(used);
            seen.add(name);
            if (!floorByPackage.containsKey(name)) {
                violations.add("a package must have a floor: package=" + used.getPackageName());
                continue;
            }
            for (Dependency dependency : used.getDirectDependenciesFromSelf()) {
                check(name, dependency, violations);
            }
        }
        floorByPackage.keySet().stream().filter(name -> !seen.contains(name))
            .forEach(name -> violations.add("a floor's package must have a class: package=" + name));
        if (!violations.isEmpty()) {
            throw new AssertionError(violations.size() + " violations of the floors of " + root + ":\n"
                + String.join("\n", violations));
        }
    }

    private void check(String user, Dependency dependency, TreeSet<String> violations) {
        JavaClass target = dependency.getTargetClass().getBaseComponentType();
        String used = relative(target);
        Integer floor = used == null ? null : floorByPackage.get(used);
        if (floor != null && !used.equals(user) && floor >= floorByPackage.get(user)) {
            violations.add(text(user) + " must not use " + text(used) + ": " + dependency.getDescription());
        }
    }

    private String text(String name) {
        return (name.isEmpty() ? root : name) + " (floor " + floorByPackage.get(name) + ")";
    }

    /** The class's package relative to the root; null outside the root. */
    private String relative(JavaClass type) {
        String name = type.getPackageName();
        if (name.equals(root)) {
            return "";
        }
        return name.startsWith(root + ".") ? name.substring(root.length() + 1) : null;
    }
}
