#include "hws_share.h"

#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

static const char MARK[8] = "hawser1";

typedef struct hws_share_message {
    char mark[sizeof MARK];
    uint64_t name[HWS_SHARE_NAME_WORDS];
} hws_share_message_t;

bool hws_share_make(const uint64_t name[HWS_SHARE_NAME_WORDS], int *descriptor_p, hws_share_end_t *end_p) {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
        return false;
    }
    hws_share_message_t message;
    struct stat status;
    memcpy(message.mark, MARK, sizeof MARK);
    memcpy(message.name, name, sizeof message.name);
    if (send(ends[0], &message, sizeof message, MSG_DONTWAIT | MSG_NOSIGNAL) != (ssize_t) sizeof message
        || fstat(ends[0], &status) != 0) {
        close(ends[0]);
        close(ends[1]);
        return false;
    }
    *end_p = (hws_share_end_t) {.fd = ends[0], .device = status.st_dev, .inode = status.st_ino};
    *descriptor_p = ends[1];
    return true;
}

bool hws_share_read(int descriptor, uint64_t name[HWS_SHARE_NAME_WORDS]) {
    hws_share_message_t message;
    if (recv(descriptor, &message, sizeof message, MSG_PEEK | MSG_DONTWAIT | MSG_TRUNC) != (ssize_t) sizeof message
        || memcmp(message.mark, MARK, sizeof MARK) != 0) {
        return false;
    }
    memcpy(name, message.name, sizeof message.name);
    return true;
}

bool hws_share_orphaned(int descriptor) {
    struct pollfd at = {.fd = descriptor};
    return poll(&at, 1, 0) > 0 && (at.revents & POLLHUP) != 0;
}

bool hws_share_ended(const hws_share_end_t *end) {
    struct stat status;
    if (fstat(end->fd, &status) != 0 || status.st_dev != end->device || status.st_ino != end->inode) {
        return true; /* the program has closed the number, which is not ours any more */
    }
    if (!hws_share_orphaned(end->fd)) {
        return false;
    }
    close(end->fd);
    return true;
}
