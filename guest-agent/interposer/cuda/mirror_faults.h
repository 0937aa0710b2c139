/* Serves accesses of the program to pages that it does not have, in a thread of its own. */
#ifndef HWS_MIRROR_FAULTS_H
#define HWS_MIRROR_FAULTS_H

#include "mirror_state.h"

/* Starts the thread, once. Returns false when memory or threads are short. Without the lock. */
bool hws_faults_start(void);

#endif
