/* Preloaded into a process, it ends the process at an operation that changes a disk, or that tells
 * a server to change its own.
 *
 * arm(n, 0): at the n-th such operation, as kill -9 does: what the kernel was told before stays.
 * arm(n, seed): as a loss of power does: of each file all that was not synced is there or gone,
 * as the seed has it. Names of files stay, whether their folder was synced or not: the worst that
 * happens to a program that renames before it syncs. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define REAL(name) static __typeof__(&name) real; if (!real) real = dlsym(RTLD_NEXT, #name)

static atomic_long left;
static atomic_int armed;
static unsigned long chance;

/* Called by the test when what comes from then on shall count. */
void arm(long at, unsigned long seed) {
    atomic_store(&left, at);
    chance = seed;
    atomic_store(&armed, 1);
}

/* --------------------------------------------------------- what was there before each change */

struct change {
    struct change *before;
    dev_t device;
    ino_t inode;
    int fd;
    off_t size, at;
    size_t count;
    char old[];
};
static struct change *newest;
static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;

static int on_disk(int fd, struct stat *facts) {
    return fstat(fd, facts) == 0 && S_ISREG(facts->st_mode);
}

/* Before `count` bytes of a file from `at` on are written, or the file is cut there. */
static void remember(int fd, off_t at, size_t count) {
    struct stat facts;
    char path[64];
    if (!atomic_load(&armed) || !chance || !on_disk(fd, &facts)) return;
    if (at < 0) at = facts.st_size;
    if (at + (off_t)count > facts.st_size) count = at < facts.st_size ? facts.st_size - at : 0;
    struct change *one = malloc(sizeof *one + count);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    one->fd = open(path, O_RDWR | O_CLOEXEC);
    if (one->fd < 0 || pread(one->fd, one->old, count, at) != (ssize_t)count) abort();
    one->device = facts.st_dev;
    one->inode = facts.st_ino;
    one->size = facts.st_size;
    one->at = at;
    one->count = count;
    pthread_mutex_lock(&guard);
    one->before = newest;
    newest = one;
    pthread_mutex_unlock(&guard);
}

/* A file is synced: its changes stay. */
static void forget_nothing_of(int fd) {
    struct stat facts;
    if (!on_disk(fd, &facts)) return;
    pthread_mutex_lock(&guard);
    for (struct change **at = &newest; *at;) {
        struct change *one = *at;
        if (one->device == facts.st_dev && one->inode == facts.st_ino) {
            *at = one->before;
            close(one->fd);
            free(one);
        } else {
            at = &one->before;
        }
    }
    pthread_mutex_unlock(&guard);
}

static void die(void) {
    static ssize_t (*put)(int, const void *, size_t, off_t);
    static int (*cut)(int, off_t);
    put = (__typeof__(put))dlsym(RTLD_NEXT, "pwrite");
    cut = (__typeof__(cut))dlsym(RTLD_NEXT, "ftruncate");
    for (struct change *one = newest; one; one = one->before) {
        if ((chance * 2654435761UL ^ (unsigned long)one->inode * 40503UL) >> 7 & 1) continue;
        if (cut(one->fd, one->size) != 0) abort();
        if (one->count && put(one->fd, one->old, one->count, one->at) != (ssize_t)one->count)
            abort();
    }
    _exit(9);
}

static void step(void) {
    if (atomic_load(&armed) && atomic_fetch_sub(&left, 1) == 1) die();
}

/* ----------------------------------------------------------------------------- operations */

ssize_t write(int fd, const void *data, size_t size) {
    REAL(write);
    struct stat facts;
    if (on_disk(fd, &facts)) {
        step();
        remember(fd, fcntl(fd, F_GETFL) & O_APPEND ? -1 : lseek(fd, 0, SEEK_CUR), size);
    }
    return real(fd, data, size);
}
ssize_t pwrite(int fd, const void *data, size_t size, off_t at) {
    REAL(pwrite);
    step();
    remember(fd, at, size);
    return real(fd, data, size, at);
}
ssize_t pwrite64(int fd, const void *data, size_t size, off64_t at) {
    REAL(pwrite64);
    step();
    remember(fd, at, size);
    return real(fd, data, size, at);
}
int ftruncate(int fd, off_t size) {
    REAL(ftruncate);
    step();
    remember(fd, size, (size_t)1 << 40);
    return real(fd, size);
}
int ftruncate64(int fd, off64_t size) {
    REAL(ftruncate64);
    step();
    remember(fd, size, (size_t)1 << 40);
    return real(fd, size);
}
/* The machine's own disk need not be bothered: nobody takes its power away. */
int fsync(int fd) { step(); forget_nothing_of(fd); return 0; }
int fdatasync(int fd) { step(); forget_nothing_of(fd); return 0; }
int rename(const char *from, const char *to) { REAL(rename); step(); return real(from, to); }
int unlink(const char *path) { REAL(unlink); step(); return real(path); }
int mkdir(const char *path, mode_t mode) { REAL(mkdir); step(); return real(path, mode); }
int rmdir(const char *path) { REAL(rmdir); step(); return real(path); }

ssize_t send(int fd, const void *data, size_t size, int flags) {
    REAL(send);
    step();
    return real(fd, data, size, flags);
}

static int creates(int flags) { return (flags & O_CREAT) != 0; }
#define OPENS(name)                                       \
    int name(const char *path, int flags, ...) {          \
        REAL(name);                                       \
        mode_t mode = 0;                                  \
        if (creates(flags)) {                             \
            va_list more;                                 \
            va_start(more, flags);                        \
            mode = va_arg(more, mode_t);                  \
            va_end(more);                                 \
            step();                                       \
        }                                                 \
        return real(path, flags, mode);                   \
    }
OPENS(open)
OPENS(open64)
