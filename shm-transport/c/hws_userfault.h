/* The descriptor of userfaultfd(2), which stops threads at absent pages. */
#ifndef HWS_USERFAULT_H
#define HWS_USERFAULT_H

/* Whose accesses a descriptor stops. */
typedef enum hws_userfault {
    HWS_USERFAULT_NONE,    /* the guest allows none */
    HWS_USERFAULT_PROGRAM, /* the program's own; those of its system calls fail with EFAULT */
    HWS_USERFAULT_ALL,     /* those of its system calls as well */
} hws_userfault_t;

/* Group whose members may open /dev/userfaultfd, by the guest package's rule for udev. */
#define HWS_USERFAULT_GROUP "render"

/*
 * Opens a descriptor that stops as many accesses as this process is allowed. It does not block and is closed by exec.
 * Returns -1, with errno, for HWS_USERFAULT_NONE. Any thread.
 */
int hws_userfault_open(hws_userfault_t *kind_p);

#endif
