/* The plainest pager in C, for benchmarks/live.py: what does a fault cost when nothing but the kernel's work is done?

   pager UFFD MEMORY STORE BASE PAGES PAGE FRAMES: a page that is missing is read from the same place of the store, past
   the page cache; when all frames are taken, the page that came first goes. It ends when its parent does. */

#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/falloc.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <unistd.h>

int main(int argc, char **argv) {
    if (argc != 8) return 2;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    int uffd = atoi(argv[1]), memory = atoi(argv[2]), store = atoi(argv[3]);
    unsigned long base = strtoul(argv[4], 0, 10), pages = strtoul(argv[5], 0, 10), page = strtoul(argv[6], 0, 10);
    unsigned long frames = strtoul(argv[7], 0, 10), taken = 0, next = 0;
    unsigned long *order = calloc(frames, sizeof *order);
    void *buffer = aligned_alloc(4096, page);
    (void)pages;
    for (;;) {
        struct pollfd ready = {uffd, POLLIN, 0};
        struct uffd_msg message;
        if (poll(&ready, 1, -1) < 0 || read(uffd, &message, sizeof message) != sizeof message) continue;
        if (message.event != UFFD_EVENT_PAGEFAULT) continue;
        unsigned long number = (message.arg.pagefault.address - base) / page;
        if (taken == frames) {
            unsigned long out = order[next];
            struct uffdio_range range = {base + out * page, page};
            fallocate(memory, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, out * page, page);
            ioctl(uffd, UFFDIO_WAKE, &range);
        } else taken++;
        order[next] = number;
        next = (next + 1) % frames;
        if (pread(store, buffer, page, number * page) != (ssize_t)page) { perror("pread"); return 1; }
        struct uffdio_copy copy = {base + number * page, (unsigned long)buffer, page, UFFDIO_COPY_MODE_WP, 0};
        if (ioctl(uffd, UFFDIO_COPY, &copy)) { perror("UFFDIO_COPY"); return 1; }
    }
}
