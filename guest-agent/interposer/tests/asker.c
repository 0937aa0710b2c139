#include "asker.h"

int asker_ask(const asker_driver_t *driver) {
    const void *table = &table;
    CUuuid id = {{0}};
    int result = driver->table(&table, &id);
    return table == NULL ? result : -1;
}

int asker_start(const asker_driver_t *driver) {
    int version;
    int first = asker_ask(driver);
    driver->version(&version);
    int started = driver->init(0);
    int second = asker_ask(driver);
    return started != 0 ? started : first != second ? -1 : second;
}
