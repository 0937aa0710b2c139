/* Distinguishes CUDA runtimes from other libraries that request private tables, by the thread's earlier calls. */
#ifndef HWS_PRIVATE_TABLES_H
#define HWS_PRIVATE_TABLES_H

#include "hws_driver.h"

/* Keeps the caller of cuDriverGetVersion, or of cuInit. */
void hws_private_tables_note_version(const void *caller);
void hws_private_tables_note_init(const void *caller);

#endif
