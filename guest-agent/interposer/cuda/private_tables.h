/* Tells CUDA runtimes from other libraries that ask for private tables, by the thread's calls before. */
#ifndef HWS_PRIVATE_TABLES_H
#define HWS_PRIVATE_TABLES_H

#include "hws_driver.h"

/* Keeps the return address of cuDriverGetVersion and of cuInit. */
void hws_private_tables_note_version(const void *caller);
void hws_private_tables_note_init(const void *caller);

#endif
