#include "hws_userfault.h"

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Linux 6.1 and 5.11; older headers lack them. */
#ifndef USERFAULTFD_IOC_NEW
#define USERFAULTFD_IOC_NEW _IO(0xAA, 0x00)
#endif
#ifndef UFFD_USER_MODE_ONLY
#define UFFD_USER_MODE_ONLY 1
#endif

int hws_userfault_open(hws_userfault_t *kind_p) {
    const int flags = O_CLOEXEC | O_NONBLOCK;
    *kind_p = HWS_USERFAULT_ALL;
    int device = open("/dev/userfaultfd", O_RDWR | O_CLOEXEC);
    int opened = device < 0 ? -1 : ioctl(device, USERFAULTFD_IOC_NEW, flags);
    if (device >= 0) {
        close(device);
    }
    if (opened < 0) {
        opened = (int) syscall(SYS_userfaultfd, flags);
    }
    if (opened < 0) {
        *kind_p = HWS_USERFAULT_PROGRAM;
        opened = (int) syscall(SYS_userfaultfd, flags | UFFD_USER_MODE_ONLY);
    }
    if (opened < 0) {
        *kind_p = HWS_USERFAULT_NONE;
    }
    return opened;
}
