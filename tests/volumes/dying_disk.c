/* Preloaded into a process, it ends the process at the n-th operation that changes a disk.
 *
 * DYING_AT=n: the n-th such operation is not done. Without it they are only counted.
 * What a process that is killed leaves behind is what the kernel was told before. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static atomic_long left;
static atomic_int armed;

/* Called by the test when what comes from then on shall count. */
void arm(long at) {
    atomic_store(&left, at);
    atomic_store(&armed, 1);
}

static int on_disk(int fd) {
    struct stat facts;
    return fstat(fd, &facts) == 0 && S_ISREG(facts.st_mode);
}

static void step(void) {
    if (atomic_load(&armed) && atomic_fetch_sub(&left, 1) == 1) _exit(9);
}

#define REAL(name) static __typeof__(&name) real; if (!real) real = dlsym(RTLD_NEXT, #name)

ssize_t write(int fd, const void *data, size_t size) {
    REAL(write);
    if (on_disk(fd)) step();
    return real(fd, data, size);
}
ssize_t pwrite(int fd, const void *data, size_t size, off_t at) {
    REAL(pwrite);
    step();
    return real(fd, data, size, at);
}
ssize_t pwrite64(int fd, const void *data, size_t size, off64_t at) {
    REAL(pwrite64);
    step();
    return real(fd, data, size, at);
}
int ftruncate(int fd, off_t size) { REAL(ftruncate); step(); return real(fd, size); }
int ftruncate64(int fd, off64_t size) { REAL(ftruncate64); step(); return real(fd, size); }
int fsync(int fd) { REAL(fsync); step(); return real(fd); }
int fdatasync(int fd) { REAL(fdatasync); step(); return real(fd); }
int rename(const char *from, const char *to) { REAL(rename); step(); return real(from, to); }
int unlink(const char *path) { REAL(unlink); step(); return real(path); }
int mkdir(const char *path, mode_t mode) { REAL(mkdir); step(); return real(path, mode); }
int rmdir(const char *path) { REAL(rmdir); step(); return real(path); }

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
