/* Preloaded into a process under test: counts what it does to the files below a folder, fails a
 * range of these operations, and writes down what reached them.
 *
 * FAULTS_FOLDER   the folder, absolute
 * FAULTS_CONTROL  a file of eight 64-bit numbers (see enum below), shared with the test
 * FAULTS_TRACE    optional: a file to which every change is appended, for replays of power loss
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Fields of the control file. */
enum { SEEN, FROM, TO, OPERATIONS, ERROR, INJECTED, FIELDS = 8 };
/* Bits of OPERATIONS; the same numbers name the operations in a trace. */
enum { OPEN = 1, READ = 2, WRITE = 4, SYNC = 8, TRUNCATE = 16, UNLINK = 32, PRINT = 64,
       RENAME = 128 };
/* A value of ERROR: half of the bytes are transferred, and that is what the caller is told. */
enum { SHORT = 10000 };

static volatile int64_t *control;
static const char *folder;
static int trace = -1;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
#define DESCRIPTORS 4096
/* Number of the file behind a descriptor, 0 where it is none of ours. */
static uint32_t files[DESCRIPTORS];
static char names[64][128];
static uint32_t known;

__attribute__((constructor)) static void begin(void) {
    const char *path = getenv("FAULTS_CONTROL");
    folder = getenv("FAULTS_FOLDER");
    if (!path || !folder) return;
    int fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC, 0);
    void *map = mmap(NULL, FIELDS * 8, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    syscall(SYS_close, fd);
    if (map == MAP_FAILED) abort();
    const char *to = getenv("FAULTS_TRACE");
    if (to) {
        int flags = O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC;
        trace = (int)syscall(SYS_openat, AT_FDCWD, to, flags, 0600);
    }
    control = map;
}

/* The number of a path below the folder; 0 for others and for SQLite's shared memory, which is
 * never read after a crash. */
static uint32_t number_of(const char *path) {
    size_t length = folder ? strlen(folder) : 0;
    if (!control || strncmp(path, folder, length) != 0 || path[length] != '/') return 0;
    const char *name = path + length + 1;
    size_t end = strlen(name);
    if (end >= sizeof names[0] || (end > 4 && strcmp(name + end - 4, "-shm") == 0)) return 0;
    pthread_mutex_lock(&lock);
    uint32_t number = 0;
    while (number < known && strcmp(names[number], name) != 0) number++;
    if (number == known && known < 64) strcpy(names[known++], name);
    pthread_mutex_unlock(&lock);
    return number + 1;
}

static uint32_t file_of(int fd) {
    return control && fd >= 0 && fd < DESCRIPTORS ? files[fd] : 0;
}

/* The error that this operation has to fail with, or 0. */
static int fault(uint32_t operation) {
    if (!(control[OPERATIONS] & operation)) return 0;
    int64_t turn = __atomic_fetch_add(&control[SEEN], 1, __ATOMIC_SEQ_CST);
    if (turn < control[FROM] || turn >= control[TO]) return 0;
    __atomic_fetch_add(&control[INJECTED], 1, __ATOMIC_SEQ_CST);
    return (int)control[ERROR];
}

/* A record: operation, file, offset, length (each 64 bits), then the bytes. */
static void note(uint64_t operation, uint32_t file, int64_t offset, const void *data, size_t count) {
    if (trace < 0) return;
    uint64_t head[4] = {operation, file, (uint64_t)offset, count};
    pthread_mutex_lock(&lock);
    syscall(SYS_write, trace, head, sizeof head);
    if (data) syscall(SYS_write, trace, data, count);
    pthread_mutex_unlock(&lock);
}

static int opened(const char *path, int flags, mode_t mode) {
    uint32_t file = number_of(path);
    if (file) {
        int error = fault(OPEN);
        if (error && error != SHORT) { errno = error; return -1; }
    }
    int fd = (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
    if (fd >= 0 && fd < DESCRIPTORS) files[fd] = file;
    if (fd >= 0 && file) note(OPEN, file, 0, path + strlen(folder) + 1, strlen(path) - strlen(folder) - 1);
    return fd;
}

static mode_t mode_of(int flags, va_list rest) {
    return flags & (O_CREAT | O_TMPFILE) ? (mode_t)va_arg(rest, int) : 0;
}

int open(const char *path, int flags, ...) {
    va_list rest;
    va_start(rest, flags);
    int fd = opened(path, flags, mode_of(flags, rest));
    va_end(rest);
    return fd;
}

int open64(const char *path, int flags, ...) {
    va_list rest;
    va_start(rest, flags);
    int fd = opened(path, flags | O_LARGEFILE, mode_of(flags, rest));
    va_end(rest);
    return fd;
}

int close(int fd) {
    if (fd >= 0 && fd < DESCRIPTORS) files[fd] = 0;
    return (int)syscall(SYS_close, fd);
}

ssize_t pread64(int fd, void *data, size_t count, off64_t offset) {
    if (file_of(fd)) {
        int error = fault(READ);
        if (error == SHORT) count = (count + 1) / 2;
        else if (error) { errno = error; return -1; }
    }
    return syscall(SYS_pread64, fd, data, count, offset);
}

ssize_t pread(int fd, void *data, size_t count, off_t offset) {
    return pread64(fd, data, count, offset);
}

ssize_t read(int fd, void *data, size_t count) {
    if (file_of(fd)) {
        int error = fault(READ);
        if (error == SHORT) count = (count + 1) / 2;
        else if (error) { errno = error; return -1; }
    }
    return syscall(SYS_read, fd, data, count);
}

ssize_t pwrite64(int fd, const void *data, size_t count, off64_t offset) {
    uint32_t file = file_of(fd);
    if (file) {
        int error = fault(WRITE);
        if (error == SHORT) count = (count + 1) / 2;
        else if (error) { errno = error; return -1; }
    }
    ssize_t done = syscall(SYS_pwrite64, fd, data, count, offset);
    if (file && done > 0) note(WRITE, file, offset, data, (size_t)done);
    return done;
}

ssize_t pwrite(int fd, const void *data, size_t count, off_t offset) {
    return pwrite64(fd, data, count, offset);
}

ssize_t write(int fd, const void *data, size_t count) {
    uint32_t file = file_of(fd);
    if (file) {
        int error = fault(WRITE);
        if (error == SHORT) count = (count + 1) / 2;
        else if (error) { errno = error; return -1; }
    }
    off_t offset = file ? (off_t)syscall(SYS_lseek, fd, 0, SEEK_CUR) : 0;
    /* What is printed is written down first: it counts as announced from the first byte on. */
    if (fd == 1) note(PRINT, 0, 0, data, count);
    ssize_t done = syscall(SYS_write, fd, data, count);
    if (file && done > 0) note(WRITE, file, offset, data, (size_t)done);
    return done;
}

static int synced(int fd, long call) {
    uint32_t file = file_of(fd);
    if (file) {
        int error = fault(SYNC);
        if (error && error != SHORT) { errno = error; return -1; }
    }
    int done = (int)syscall(call, fd);
    if (file && done == 0) note(SYNC, file, 0, NULL, 0);
    return done;
}

int fsync(int fd) { return synced(fd, SYS_fsync); }
int fdatasync(int fd) { return synced(fd, SYS_fdatasync); }

int ftruncate64(int fd, off64_t length) {
    uint32_t file = file_of(fd);
    if (file) {
        int error = fault(TRUNCATE);
        if (error && error != SHORT) { errno = error; return -1; }
    }
    int done = (int)syscall(SYS_ftruncate, fd, length);
    if (file && done == 0) note(TRUNCATE, file, length, NULL, 0);
    return done;
}

int ftruncate(int fd, off_t length) { return ftruncate64(fd, length); }

int unlink(const char *path) {
    uint32_t file = number_of(path);
    if (file) {
        int error = fault(UNLINK);
        if (error && error != SHORT) { errno = error; return -1; }
    }
    int done = (int)syscall(SYS_unlink, path);
    if (file && done == 0) note(UNLINK, file, 0, NULL, 0);
    return done;
}

int rename(const char *from, const char *to) {
    if (number_of(to)) {
        int error = fault(RENAME);
        if (error && error != SHORT) { errno = error; return -1; }
    }
    return (int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
}
