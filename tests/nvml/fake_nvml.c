/* A stand-in for libnvidia-ml.so.1 that plays a scenario file, for tests on machines without a GPU.
 *
 * The real nvidia-ml-py loads it through its own ctypes path. It exports the symbols that memdiag
 * uses, with the struct layouts and the two-call size protocol of nvml.h. A driver that lacks a
 * symbol is built with -DWITHOUT_<symbol>.
 *
 * The scenario is read again at every nvmlInitWithFlags from $FAKE_NVML_SCENARIO; README.md beside
 * this file describes it. `frame` is the scenario's clock: the number in the file
 * $FAKE_NVML_FRAME, or milliseconds since nvmlInit divided by `clock_ms` where that is given.
 */
#define _GNU_SOURCE
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SUCCESS = 0, UNINITIALIZED = 1, INVALID_ARGUMENT = 2, NOT_SUPPORTED = 3, NOT_FOUND = 6,
       INSUFFICIENT_SIZE = 7, UNKNOWN = 999, VERSION_MISMATCH = 25 };
enum { COMPUTE, GRAPHICS, MPS };
enum { MOST = 64, MOST_ROWS = 512, NAME = 96 };
#define NOT_AVAILABLE ULLONG_MAX
#define MEMORY_V2 0x02000028u

typedef unsigned long long Bytes;
typedef struct { Bytes total, free, used; } MemoryV1;
typedef struct { unsigned version; Bytes total, reserved, free, used; } MemoryV2;
typedef struct { unsigned pid; Bytes used; unsigned gi, ci; } RowV2;
/* What 535.43 to 535.85 wrote for _v3: one field more than every later driver. */
typedef struct { unsigned pid; Bytes used; unsigned gi, ci; Bytes protected_used; } RowScrambled;

typedef struct {
    int index, parent, minor, mig_mode; /* parent: -1 for a whole GPU */
    char name[NAME], uuid[NAME];
    Bytes total, reserved, used;
    long long grow;
    unsigned gi, ci;
} Device;
typedef struct {
    int device, list;
    unsigned pid, gi, ci;
    char pid_file[256]; /* "" where the pid is known */
    Bytes used;
    long long grow, from, to;
} Row;
typedef struct { int device, code, hold; char symbol[NAME]; long long ms, from, to; } Fault;

static Device devices[MOST];
static Row rows[MOST_ROWS];
static Fault faults[MOST];
static int device_count, row_count, fault_count, scrambled, initialized;
static long long clock_ms, started_ms;
static char driver_version[NAME], nvml_version[NAME];
static int cuda_version;

static long long now_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000LL + t.tv_nsec / 1000000;
}

/* The number in a file, 0 without one. */
static long long number_in(const char *path) {
    FILE *file = path ? fopen(path, "r") : NULL;
    long long value = 0;
    if (file) {
        if (fscanf(file, "%lld", &value) != 1) value = 0;
        fclose(file);
    }
    return value;
}

static long long frame(void) {
    if (clock_ms > 0) return (now_ms() - started_ms) / clock_ms;
    return number_in(getenv("FAKE_NVML_FRAME"));
}

/* The value of ` key=` in `line` ("" where it is missing); quotes keep blanks together. */
static const char *value_of(const char *line, const char *key, char *into) {
    char wanted[NAME];
    snprintf(wanted, sizeof wanted, " %s=", key);
    const char *at = strstr(line, wanted);
    into[0] = 0;
    if (!at) return into;
    at += strlen(wanted);
    char end = *at == '"' ? '"' : ' ';
    if (*at == '"') at++;
    int i = 0;
    while (at[i] && at[i] != end && at[i] != '\n' && i < NAME - 1) { into[i] = at[i]; i++; }
    into[i] = 0;
    return into;
}

/* `500M`, `2G`, `4096`, `na`. */
static Bytes bytes_of(const char *line, const char *key, Bytes otherwise) {
    char text[NAME], *rest;
    value_of(line, key, text);
    if (!text[0]) return otherwise;
    if (!strcmp(text, "na")) return NOT_AVAILABLE;
    long long number = strtoll(text, &rest, 10);
    long long unit = *rest == 'G' ? 1LL << 30 : *rest == 'M' ? 1LL << 20 : 1;
    return (Bytes)(number * unit);
}

static long long number_of(const char *line, const char *key, long long otherwise) {
    char text[NAME];
    value_of(line, key, text);
    return text[0] ? strtoll(text, NULL, 10) : otherwise;
}

static void read_device(const char *line, int index, int parent) {
    Device *d = &devices[device_count++];
    d->index = index;
    d->parent = parent;
    d->minor = (int)number_of(line, "minor", index);
    d->mig_mode = (int)number_of(line, "mig", -1);
    value_of(line, "name", d->name);
    value_of(line, "uuid", d->uuid);
    d->total = bytes_of(line, "total", 8ULL << 30);
    d->reserved = bytes_of(line, "reserved", 0);
    d->used = bytes_of(line, "used", 0);
    d->grow = (long long)bytes_of(line, "grow", 0);
    d->gi = (unsigned)number_of(line, "gi", -1);
    d->ci = (unsigned)number_of(line, "ci", -1);
}

static int position(int index, int parent) {
    for (int i = 0; i < device_count; i++)
        if (devices[i].index == index && devices[i].parent == parent) return i;
    return -1;
}

static void read_row(const char *line, const char *where, const char *list) {
    int gpu = 0, mig = -1;
    if (sscanf(where, "%d/%d", &gpu, &mig) == 2)
        gpu = position(mig, gpu);
    else
        gpu = position(gpu, -1);
    Row *r = &rows[row_count++];
    r->device = gpu;
    r->list = !strcmp(list, "graphics") ? GRAPHICS : !strcmp(list, "mps") ? MPS : COMPUTE;
    r->pid = (unsigned)number_of(line, "pid", 0);
    const char *file = strstr(line, " pid=@");
    r->pid_file[0] = 0;
    if (file) sscanf(file + strlen(" pid=@"), "%255s", r->pid_file);
    r->used = bytes_of(line, "used", 0);
    r->grow = (long long)bytes_of(line, "grow", 0);
    r->gi = (unsigned)number_of(line, "gi", -1);
    r->ci = (unsigned)number_of(line, "ci", -1);
    r->from = number_of(line, "from", 0);
    r->to = number_of(line, "to", LLONG_MAX);
}

static void read_fault(const char *line, const char *symbol) {
    Fault *f = &faults[fault_count++];
    snprintf(f->symbol, NAME, "%s", symbol);
    f->code = (int)number_of(line, "code", SUCCESS);
    f->ms = number_of(line, "ms", 0);
    f->hold = (int)number_of(line, "hold", 0);
    f->device = (int)number_of(line, "device", -1);
    f->from = number_of(line, "from", 0);
    f->to = number_of(line, "to", LLONG_MAX);
}

static void read_scenario(void) {
    const char *path = getenv("FAKE_NVML_SCENARIO");
    FILE *file = path ? fopen(path, "r") : NULL;
    char line[1024], word[NAME], second[NAME], third[NAME];
    device_count = row_count = fault_count = scrambled = 0;
    clock_ms = 0;
    cuda_version = 12040;
    snprintf(driver_version, NAME, "550.54.15");
    snprintf(nvml_version, NAME, "12.550.54.15");
    while (file && fgets(line, sizeof line, file)) {
        word[0] = second[0] = third[0] = 0;
        if (sscanf(line, "%95s %95s %95s", word, second, third) < 1 || word[0] == '#') continue;
        if (!strcmp(word, "driver")) snprintf(driver_version, NAME, "%s", second);
        if (!strcmp(word, "nvml")) snprintf(nvml_version, NAME, "%s", second);
        if (!strcmp(word, "cuda")) cuda_version = atoi(second);
        if (!strcmp(word, "clock_ms")) clock_ms = atoll(second);
        if (!strcmp(word, "scrambled")) scrambled = 1;
        if (!strcmp(word, "device") && device_count < MOST) read_device(line, atoi(second), -1);
        if (!strcmp(word, "mig") && device_count < MOST)
            read_device(line, atoi(strchr(second, '/') + 1), atoi(second));
        if (!strcmp(word, "row") && row_count < MOST_ROWS) read_row(line, second, third);
        if (!strcmp(word, "fault") && fault_count < MOST) read_fault(line, second);
    }
    if (file) fclose(file);
    started_ms = now_ms();
}

static void rest(long long ms) {
    struct timespec t = {ms / 1000, (ms % 1000) * 1000000};
    nanosleep(&t, NULL);
}

/* Play the scenario's delay and error for this call; `device` counts whole GPUs, -1 for none. */
static int played(const char *symbol, const Device *d) {
    if (strcmp(symbol, "nvmlInitWithFlags") && !initialized) return UNINITIALIZED;
    int gpu = d ? (d->parent >= 0 ? d->parent : d->index) : -1;
    long long now = frame();
    for (int i = 0; i < fault_count; i++) {
        Fault *f = &faults[i];
        if (strcmp(f->symbol, "*") && strcmp(f->symbol, symbol)) continue;
        if (f->device >= 0 && f->device != gpu) continue;
        if (now < f->from || now > f->to) continue;
        if (f->ms > 0) rest(f->ms);
        while (f->hold && frame() <= f->to) rest(2);
        if (f->code != SUCCESS) return f->code;
    }
    return SUCCESS;
}
#define PLAY(device) do { int code_ = played(__func__, device); if (code_) return code_; } while (0)

static Bytes moved(Bytes start, long long grow) {
    return start == NOT_AVAILABLE ? start : start + (Bytes)(grow * frame());
}

int nvmlInitWithFlags(unsigned flags) {
    (void)flags;
    read_scenario();
    PLAY(NULL);
    initialized = 1;
    return SUCCESS;
}
int nvmlShutdown(void) {
    PLAY(NULL);
    initialized = 0;
    return SUCCESS;
}
const char *nvmlErrorString(int code) {
    return code == VERSION_MISMATCH ? "Argument version mismatch" : "A fault of the scenario";
}
int nvmlSystemGetDriverVersion(char *into, unsigned size) {
    PLAY(NULL);
    snprintf(into, size, "%s", driver_version);
    return SUCCESS;
}
int nvmlSystemGetNVMLVersion(char *into, unsigned size) {
    PLAY(NULL);
    snprintf(into, size, "%s", nvml_version);
    return SUCCESS;
}
int nvmlSystemGetCudaDriverVersion(int *into) {
    PLAY(NULL);
    *into = cuda_version;
    return SUCCESS;
}
int nvmlSystemGetCudaDriverVersion_v2(int *into) { return nvmlSystemGetCudaDriverVersion(into); }

int nvmlDeviceGetCount_v2(unsigned *count) {
    PLAY(NULL);
    *count = 0;
    for (int i = 0; i < device_count; i++) *count += devices[i].parent < 0;
    return SUCCESS;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned index, Device **into) {
    int at = position((int)index, -1);
    if (at < 0) return initialized ? INVALID_ARGUMENT : UNINITIALIZED;
    PLAY(&devices[at]);
    *into = &devices[at];
    return SUCCESS;
}
int nvmlDeviceGetName(Device *d, char *into, unsigned size) {
    PLAY(d);
    snprintf(into, size, "%s", d->name);
    return SUCCESS;
}
int nvmlDeviceGetUUID(Device *d, char *into, unsigned size) {
    PLAY(d);
    snprintf(into, size, "%s", d->uuid);
    return SUCCESS;
}
int nvmlDeviceGetMinorNumber(Device *d, unsigned *into) {
    PLAY(d);
    *into = (unsigned)d->minor;
    return SUCCESS;
}
int nvmlDeviceGetMemoryInfo(Device *d, MemoryV1 *into) {
    PLAY(d);
    into->total = d->total; /* version 1 counts what the driver reserves as used */
    into->used = moved(d->used, d->grow) + d->reserved;
    into->free = d->total - into->used;
    return SUCCESS;
}
#ifndef WITHOUT_nvmlDeviceGetMemoryInfo_v2
int nvmlDeviceGetMemoryInfo_v2(Device *d, MemoryV2 *into) {
    PLAY(d);
    if (into->version != MEMORY_V2) return VERSION_MISMATCH;
    into->total = d->total;
    into->reserved = d->reserved;
    into->used = moved(d->used, d->grow);
    into->free = d->total - d->reserved - into->used;
    return SUCCESS;
}
#endif

static int is_listed(Row *r, const Device *d, int list) {
    long long now = frame();
    if (r->pid_file[0]) r->pid = (unsigned)number_in(r->pid_file);
    if (r->pid_file[0] && r->pid == 0) return 0; /* the process has not said who it is yet */
    return &devices[r->device] == d && r->list == list && r->from <= now && now <= r->to;
}

__attribute__((unused)) static int list_rows(const Device *d, int list, unsigned *room, void *into, int scramble) {
    unsigned wanted = 0, written = 0;
    for (int i = 0; i < row_count; i++) wanted += is_listed(&rows[i], d, list);
    if (wanted > *room) {
        *room = wanted;
        return INSUFFICIENT_SIZE;
    }
    for (int i = 0; i < row_count; i++) {
        if (!is_listed(&rows[i], d, list)) continue;
        Row *r = &rows[i];
        Bytes used = moved(r->used, r->grow);
        if (scramble)
            ((RowScrambled *)into)[written++] = (RowScrambled){r->pid, used, r->gi, r->ci, 0};
        else
            ((RowV2 *)into)[written++] = (RowV2){r->pid, used, r->gi, r->ci};
    }
    *room = written;
    return SUCCESS;
}
#define LISTING(symbol, list, scramble)                                \
    int symbol(Device *d, unsigned *room, void *into) {                \
        PLAY(d);                                                       \
        return list_rows(d, list, room, into, scramble);               \
    }
#ifndef WITHOUT_v3
LISTING(nvmlDeviceGetComputeRunningProcesses_v3, COMPUTE, scrambled)
LISTING(nvmlDeviceGetGraphicsRunningProcesses_v3, GRAPHICS, scrambled)
LISTING(nvmlDeviceGetMPSComputeRunningProcesses_v3, MPS, scrambled)
#endif
#ifndef WITHOUT_v2
LISTING(nvmlDeviceGetComputeRunningProcesses_v2, COMPUTE, 0)
LISTING(nvmlDeviceGetGraphicsRunningProcesses_v2, GRAPHICS, 0)
LISTING(nvmlDeviceGetMPSComputeRunningProcesses_v2, MPS, 0)
#endif

#ifndef WITHOUT_mig
int nvmlDeviceGetMigMode(Device *d, unsigned *current, unsigned *pending) {
    PLAY(d);
    if (d->mig_mode < 0) return NOT_SUPPORTED;
    *current = *pending = (unsigned)d->mig_mode;
    return SUCCESS;
}
int nvmlDeviceGetMaxMigDeviceCount(Device *d, unsigned *count) {
    PLAY(d);
    *count = d->mig_mode < 0 ? 0 : 7;
    return SUCCESS;
}
int nvmlDeviceGetMigDeviceHandleByIndex(Device *d, unsigned index, Device **into) {
    PLAY(d);
    int at = position((int)index, d->index);
    if (at < 0) return NOT_FOUND;
    *into = &devices[at];
    return SUCCESS;
}
int nvmlDeviceGetGpuInstanceId(Device *d, unsigned *into) {
    PLAY(d);
    *into = d->gi;
    return SUCCESS;
}
int nvmlDeviceGetComputeInstanceId(Device *d, unsigned *into) {
    PLAY(d);
    *into = d->ci;
    return SUCCESS;
}
#endif
