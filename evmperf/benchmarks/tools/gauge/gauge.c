/* What a plain Linux board is measured with where nothing is installed: one static program without a
 * library, some kB, that writes no file and no disk.
 *
 *     evmperf-gauge disk DEVICE SECONDS   direct reads, four at a time: 1 MiB in a row, 4 KiB anywhere
 *     evmperf-gauge memory SECONDS        bandwidth of one CPU and of all, latency by size
 *     evmperf-gauge cpu SECONDS           additions, integers and matrices on one CPU and on all
 *     evmperf-gauge load SECONDS          all CPUs busy: clock and temperature
 *
 * SECONDS is a whole number, for each figure. Output as of evmperf's stand-ins (standin.h of the virtual
 * EVM): "evmperf-gauge 1", then "NAME VALUE UNIT" a line, then "end". A result that is wrong ends the
 * program with status 1 and a sentence. `make gauge` compiles it for four machines.
 */
typedef unsigned char u8;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef unsigned long word;

const char about[] __attribute__((used)) = "evmperf-gauge source " SOURCE;

/* System calls: numbers are the kernel's (include/uapi/asm-generic/unistd.h, arch/.../syscall.tbl). */
#if defined(__x86_64__)
enum { READ = 0, WRITE = 1, CLOSE = 3, MMAP = 9, MUNMAP = 11, LSEEK = 8, CLONE = 56, EXIT = 231, WAIT4 = 61,
       SETAFFINITY = 203, GETAFFINITY = 204, IO_SETUP = 206, IO_GETEVENTS = 208, IO_SUBMIT = 209,
       CLOCK_GETTIME = 228, NANOSLEEP = 35, OPENAT = 257 };
#define O_DIRECT 040000
static long call6(long n, long a, long b, long c, long d, long e, long f)
{
	long r;
	register long r10 __asm__("r10") = d, r8 __asm__("r8") = e, r9 __asm__("r9") = f;

	__asm__ volatile("syscall" : "=a"(r) : "a"(n), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return r;
}
__asm__(".globl _start\n_start: xor %ebp, %ebp\n mov %rsp, %rdi\n and $-16, %rsp\n call begin\n");
#define ADDITIONS ".rept 500\n\tadd %1, %0\n\t.endr"
#elif defined(__aarch64__) || defined(__riscv)
enum { READ = 63, WRITE = 64, CLOSE = 57, MMAP = 222, MUNMAP = 215, LSEEK = 62, CLONE = 220, EXIT = 94,
       WAIT4 = 260, SETAFFINITY = 122, GETAFFINITY = 123, IO_SETUP = 0, IO_GETEVENTS = 4,
       IO_SUBMIT = 2, CLOCK_GETTIME = 113, NANOSLEEP = 101, OPENAT = 56 };
#if defined(__aarch64__)
#define O_DIRECT 0200000
#define CALL "svc 0"
#define NUMBER "x8"
#define PLACE(n) "x" #n
__asm__(".globl _start\n_start: mov x29, #0\n mov x0, sp\n bl begin\n");
#define ADDITIONS ".rept 500\n\tadd %0, %0, %1\n\t.endr"
#else
#define O_DIRECT 040000
#define CALL "ecall"
#define NUMBER "a7"
#define PLACE(n) "a" #n
__asm__(".globl _start\n_start: mv a0, sp\n andi sp, sp, -16\n call begin\n");
#define ADDITIONS ".rept 500\n\tadd %0, %0, %1\n\t.endr"
#endif
static long call6(long n, long a, long b, long c, long d, long e, long f)
{
	register long r0 __asm__(PLACE(0)) = a, r1 __asm__(PLACE(1)) = b, r2 __asm__(PLACE(2)) = c;
	register long r3 __asm__(PLACE(3)) = d, r4 __asm__(PLACE(4)) = e, r5 __asm__(PLACE(5)) = f;
	register long number __asm__(NUMBER) = n;

	__asm__ volatile(CALL : "+r"(r0) : "r"(number), "r"(r1), "r"(r2), "r"(r3), "r"(r4), "r"(r5) : "memory");
	return r0;
}
#elif defined(__arm__)
enum { READ = 3, WRITE = 4, CLOSE = 6, MMAP = 192, MUNMAP = 91, LSEEK = 140, CLONE = 120, EXIT = 248,
       WAIT4 = 114, SETAFFINITY = 241, GETAFFINITY = 242, IO_SETUP = 243, IO_GETEVENTS = 245,
       IO_SUBMIT = 246, CLOCK_GETTIME = 263, NANOSLEEP = 162, OPENAT = 322 };
#define O_DIRECT 0200000
static long call6(long n, long a, long b, long c, long d, long e, long f)
{
	register long r0 __asm__("r0") = a, r1 __asm__("r1") = b, r2 __asm__("r2") = c, r3 __asm__("r3") = d;
	register long r4 __asm__("r4") = e, r5 __asm__("r5") = f, r7 __asm__("r7") = n;

	__asm__ volatile("svc 0" : "+r"(r0) : "r"(r7), "r"(r1), "r"(r2), "r"(r3), "r"(r4), "r"(r5) : "memory");
	return r0;
}
__asm__(".globl _start\n_start: mov r0, sp\n bic sp, sp, #7\n bl begin\n");
#define ADDITIONS ".rept 500\n\tadd %0, %0, %1\n\t.endr"
#endif

#define call(n, a, b, c) call6(n, (long)(a), (long)(b), (long)(c), 0, 0, 0)
#define MIB (1u << 20)
#define MOST_CPUS 64

struct timespec { long s, ns; };

static word length(const char *text)
{
	word n = 0;

	while (text[n])
		n++;
	return n;
}

static void print(int where, const char *text)
{
	call(WRITE, where, text, length(text));
}

static void leave(int status, const char *why)
{
	if (why) {
		print(2, why);
		print(2, "\n");
	}
	for (;;)
		call(EXIT, status, 0, 0);
}

static double now(void)
{
	static long first;
	struct timespec t;

	call(CLOCK_GETTIME, 1, &t, 0);
	if (!first)
		first = t.s;
	return (double)(t.s - first) + (double)t.ns * 1e-9;
}

static void sleep_ms(long ms)
{
	struct timespec t = { ms / 1000, ms % 1000 * 1000000 };

	call(NANOSLEEP, &t, 0, 0);
}

/* A line "NAME VALUE UNIT"; `value` is not negative, three decimals of it are printed. */
static void figure(const char *name, const char *more, double value, const char *unit)
{
	char text[32], *at = text + sizeof text;
	double part;
	u32 whole;

	if (!(value < 4e9))
		leave(1, "a figure is too large to print");
	whole = (u32)value;
	part = (value - whole) * 1000 + 0.5;
	if (part >= 1000) {
		whole++;
		part = 0;
	}
	*--at = 0;
	for (u32 n = (u32)part, i = 0; i < 3; i++, n /= 10)
		*--at = '0' + n % 10;
	*--at = '.';
	do
		*--at = '0' + whole % 10;
	while (whole /= 10);
	print(1, name);
	print(1, more);
	print(1, " ");
	print(1, at);
	print(1, " ");
	print(1, unit);
	print(1, "\n");
}

static u32 number(const char *text)
{
	u32 n = 0;

	if (!*text)
		leave(2, "usage: evmperf-gauge disk DEVICE SECONDS | memory | cpu | load SECONDS");
	for (; *text; text++) {
		if (*text < '0' || *text > '9' || n > 86400)
			leave(2, "SECONDS is a whole number of at most 86400");
		n = n * 10 + (*text - '0');
	}
	return n ? n : 1;
}

static int same(const char *a, const char *b)
{
	while (*a && *a == *b)
		a++, b++;
	return *a == *b;
}

/* Zeroed memory; shared with children if `shared`. */
static void *memory(word bytes, int shared)
{
	long at = call6(MMAP, 0, bytes, 3, (shared ? 1 : 2) | 0x20, -1, 0);

	if (at < 0 && at > -4096)
		leave(1, "the board has too little free memory");
	return (void *)at;
}

static u32 seed = 12345;

/* A number below `n`, by Knuth's and Lewis's linear congruential generator. */
static u32 below(u32 n)
{
	seed = seed * 1664525 + 1013904223;
	return (u32)(((u64)seed * n) >> 32);
}

/* CPUs: which this process may use, and work on one or on all of them at once. */
static u32 cpus[MOST_CPUS], how_many;

static void pin(u32 cpu)
{
	static word mask[MOST_CPUS * 16 / 8 / sizeof(word)];

	mask[cpu / (8 * sizeof(word))] = 1ul << cpu % (8 * sizeof(word));
	call(SETAFFINITY, 0, sizeof mask, mask);
}

static void find_cpus(void)
{
	static word mask[MOST_CPUS * 16 / 8 / sizeof(word)];
	long bytes = call(GETAFFINITY, 0, sizeof mask, mask);

	for (u32 n = 0; bytes > 0 && n < 8 * (u32)bytes && how_many < MOST_CPUS; n++)
		if (mask[n / (8 * sizeof(word))] >> n % (8 * sizeof(word)) & 1)
			cpus[how_many++] = n;
	if (!how_many)
		leave(1, "the kernel does not tell its CPUs");
}

struct shared {
	volatile u32 ready, go;
	volatile double result[MOST_CPUS], last[MOST_CPUS];
};

/* Children that each do `work` on a CPU of their own, begun at the same time, and their results. */
static struct shared *on_cpus(u32 wanted, void (*work)(struct shared *all, u32 me))
{
	struct shared *all = memory(sizeof *all, 1);

	for (u32 me = 0; me < wanted; me++) {
		long pid = call(CLONE, 17 /* SIGCHLD */, 0, 0);

		if (pid < 0)
			leave(1, "the board starts no further process");
		if (!pid) {
			pin(cpus[me]);
			__atomic_add_fetch(&all->ready, 1, __ATOMIC_SEQ_CST);
			while (!__atomic_load_n(&all->go, __ATOMIC_SEQ_CST))
				sleep_ms(1);
			work(all, me);
			leave(0, 0);
		}
	}
	for (u32 waited = 0; __atomic_load_n(&all->ready, __ATOMIC_SEQ_CST) < wanted; waited++) {
		if (waited > 20000)
			leave(1, "a process does not begin");
		sleep_ms(1);
	}
	__atomic_store_n(&all->go, 1, __ATOMIC_SEQ_CST);
	return all;
}

static void wait_for(u32 wanted)
{
	for (u32 n = 0; n < wanted; n++) {
		int status = 0;

		if (call(WAIT4, -1, &status, 0) < 0 || status)
			leave(1, "a process ended early");
	}
}

/* How often a second `work` is done, on `wanted` CPUs together, for `seconds`. */
static void (*repeated)(u32 count);
static double for_seconds;

static void repeat(struct shared *all, u32 me)
{
	double start, took;
	u32 count = 1;

	repeated(1);
	for (;;) {
		start = now();
		repeated(count);
		took = now() - start;
		if (took >= for_seconds / 2)
			break;
		count = took < for_seconds / 16 ? count * 4 : (u32)(count * (for_seconds / took)) + 1;
	}
	all->result[me] = count / took;
}

static double rate(u32 wanted, void (*work)(u32 count), double seconds)
{
	struct shared *all;
	double sum = 0;

	repeated = work;
	for_seconds = seconds;
	all = on_cpus(wanted, repeat);
	wait_for(wanted);
	for (u32 me = 0; me < wanted; me++)
		sum += all->result[me];
	return sum;
}

/* Additions that each need the one before: one a cycle, so they show the clock. */
static void __attribute__((noinline)) additions(u32 count)
{
	word sum = 0, one = 1;

	for (u32 i = 0; i < count * 200; i++)
		__asm__ volatile(ADDITIONS : "+r"(sum) : "r"(one));
	if (sum != (word)count * 100000)
		leave(1, "adding gave a wrong result");
}

/* Whole numbers: a CRC-32 of 4 KiB, sorting 512 of them, a product of two 24 x 24 matrices. */
static void whole_numbers(u32 count)
{
	static u8 data[4096];
	static u32 table[256], heap[512], a[24][24], b[24][24], c[24][24];

	for (u32 i = 0; i < 256; i++) {
		u32 n = i;

		for (int bit = 0; bit < 8; bit++)
			n = n & 1 ? n >> 1 ^ 0xedb88320 : n >> 1;
		table[i] = n;
	}
	while (count--) {
		u32 crc = ~0u, sum = 0;

		seed = 12345;
		for (u32 i = 0; i < sizeof data; i++)
			data[i] = (u8)i;
		for (u32 i = 0; i < sizeof data; i++)
			crc = crc >> 8 ^ table[(crc ^ data[i]) & 255];
		for (u32 i = 0; i < 512; i++)
			heap[i] = below(1u << 30);
		for (u32 end = 512, root = 256; end > 1;) {
			u32 value, hole, child;

			if (root) {
				value = heap[--root];
			} else {
				value = heap[--end];
				heap[end] = heap[0];
			}
			for (hole = root; (child = 2 * hole + 1) < end; hole = child) {
				if (child + 1 < end && heap[child + 1] > heap[child])
					child++;
				if (heap[child] <= value)
					break;
				heap[hole] = heap[child];
			}
			heap[hole] = value;
		}
		for (u32 i = 1; i < 512; i++)
			if (heap[i - 1] > heap[i])
				leave(1, "sorting gave a wrong result");
		for (u32 i = 0; i < 24; i++)
			for (u32 j = 0; j < 24; j++)
				a[i][j] = i + j, b[i][j] = i == j, c[i][j] = 0;
		for (u32 i = 0; i < 24; i++)
			for (u32 k = 0; k < 24; k++)
				for (u32 j = 0; j < 24; j++)
					c[i][j] += a[i][k] * b[k][j];
		for (u32 i = 0; i < 24; i++)
			for (u32 j = 0; j < 24; j++)
				sum += c[i][j] == i + j;
		if (~crc != 0xa2912082 || sum != 576)
			leave(1, "whole numbers gave a wrong result");
	}
}

#define SIDE 48
/* The product of two 48 x 48 matrices of double precision: 2 * 48^3 operations. */
static void matrices(u32 count)
{
	static double a[SIDE][SIDE], b[SIDE][SIDE], c[SIDE][SIDE];

	for (u32 i = 0; i < SIDE; i++)
		for (u32 j = 0; j < SIDE; j++)
			a[i][j] = i + 1, b[i][j] = j + 1;
	while (count--) {
		for (u32 i = 0; i < SIDE; i++)
			for (u32 j = 0; j < SIDE; j++)
				c[i][j] = 0;
		for (u32 i = 0; i < SIDE; i++)
			for (u32 k = 0; k < SIDE; k++)
				for (u32 j = 0; j < SIDE; j++)
					c[i][j] += a[i][k] * b[k][j];
		__asm__ volatile("" : : "r"(c) : "memory");
		if (c[2][3] != 3.0 * 4 * SIDE || c[SIDE - 1][0] != 1.0 * SIDE * SIDE)
			leave(1, "the matrices gave a wrong result");
	}
}

static void cpu(u32 seconds)
{
	static const char *const names[] = { "one", "all" };

	for (int all = 0; all < 2; all++) {
		u32 wanted = all ? how_many : 1;

		figure(names[all], "_clock", rate(wanted, additions, seconds) / wanted * 1e5 / 1e6, "MHz");
		figure(names[all], "_integer", rate(wanted, whole_numbers, seconds), "iterations/s");
		figure(names[all], "_floating", rate(wanted, matrices, seconds) * (2.0 * SIDE * SIDE * SIDE) / 1e3,
		       "kflops");
	}
	figure("cpus", "", how_many, "CPUs");
}

/* Memory: each process has arrays of its own; together they are larger than caches. */
static u32 array_bytes;
static int kernel;

static void __attribute__((noinline)) pass(int what, double *a, const double *b, const double *c, u32 n)
{
	if (what == 0) {
		u64 *from = (u64 *)b, s0 = 0, s1 = 0, s2 = 0, s3 = 0;

		for (u32 i = 0; i < n; i += 4)
			s0 ^= from[i], s1 ^= from[i + 1], s2 ^= from[i + 2], s3 ^= from[i + 3];
		__asm__ volatile("" : : "r"(&s0), "r"((u32)(s0 ^ s1 ^ s2 ^ s3)) : "memory");
	} else if (what == 1) {
		for (u32 i = 0; i < n; i++)
			a[i] = 1.0;
	} else if (what == 2) {
		for (u32 i = 0; i < n; i++)
			a[i] = b[i];
	} else {
		for (u32 i = 0; i < n; i++)
			a[i] = b[i] + 3.0 * c[i];
	}
	__asm__ volatile("" : : "r"(a) : "memory");
}

static void passes(struct shared *all, u32 me)
{
	static const u32 counted[] = { 1, 1, 2, 3 };	/* arrays that STREAM counts for each kernel */
	u32 n = array_bytes / 8, done = 0;
	double *a = memory(array_bytes, 0), *b = memory(array_bytes, 0), *c = memory(array_bytes, 0);
	double start;

	for (u32 i = 0; i < n; i++)
		a[i] = 0.0, b[i] = 2.0, c[i] = 1.0;
	start = now();
	do {
		pass(kernel, a, b, c, n);
		done++;
	} while (now() - start < for_seconds);
	all->result[me] = (double)done * counted[kernel] * array_bytes / (now() - start) / 1e6;
	if (a[n - 1] != (kernel == 0 ? 0.0 : kernel == 1 ? 1.0 : kernel == 2 ? 2.0 : 5.0))
		leave(1, "the arrays are wrong");
}

/* Nanoseconds of a load that needs the one before, in a random cycle through `bytes`, a line of 64 each. */
static double latency(u32 bytes, double seconds)
{
	u32 lines = bytes / 64, count = 1u << 16;
	word *at = memory(bytes, 0), step = 64 / sizeof(word), *place;
	double start, took;

	for (u32 i = 0; i < lines; i++)
		at[i * step] = i * step;
	for (u32 i = lines - 1; i > 0; i--) {	/* Sattolo's: one cycle through all */
		u32 j = below(i);
		word other = at[i * step];

		at[i * step] = at[j * step];
		at[j * step] = other;
	}
	for (word i = 0, next; i < lines; i++) {
		next = (word)at + at[i * step] * sizeof(word);
		at[i * step] = next;
	}
	for (place = at;;) {
		start = now();
		for (u32 i = 0; i < count; i++)
			place = *(word *volatile *)place;
		took = now() - start;
		if (took >= seconds / 2)
			break;
		count = took < seconds / 16 ? count * 4 : (u32)(count * (seconds / took)) + 1;
	}
	call(MUNMAP, at, bytes, 0);
	return took / count * 1e9;
}

/* MiB that can be had without taking from others (MemAvailable of /proc/meminfo). */
static u32 available_mib(void)
{
	static const char name[] = "MemAvailable:";
	char text[512];
	long file = call6(OPENAT, -100, (long)"/proc/meminfo", 0, 0, 0, 0);
	long got = file < 0 ? 0 : call(READ, file, text, sizeof text);
	u32 kib = 0;

	for (long i = 0, at = 0; i < got; i++) {
		if (!name[at]) {
			if (text[i] >= '0' && text[i] <= '9')
				kib = kib * 10 + (text[i] - '0');
			else if (text[i] != ' ')
				return kib / 1024;
		} else {
			at = text[i] == name[at] ? at + 1 : 0;
		}
	}
	leave(1, "the kernel does not tell its free memory");
	return 0;
}

static void all_memory(u32 seconds)
{
	static const char *const names[] = { "_read", "_write", "_copy", "_triad" };
	static const struct { const char *name; u32 kib; } sizes[] = {
		{ "latency_16k", 16 }, { "latency_256k", 256 }, { "latency_4m", 4096 }, { "latency_64m", 65536 } };
	u32 free_mib = available_mib();

	for (int many = 0; many < 2; many++) {
		u32 wanted = many ? how_many : 1, mib = 64;

		while (mib > 1 && mib * 6 > free_mib)
			mib /= 2;
		array_bytes = (u32)((double)mib * MIB / wanted) & ~63u;
		if (mib < 8 || array_bytes < 4096)
			leave(1, "less than 48 MiB of memory are free");
		for (kernel = 0; kernel < 4; kernel++) {
			struct shared *all;
			double sum = 0;

			for_seconds = seconds;
			all = on_cpus(wanted, passes);
			wait_for(wanted);
			for (u32 me = 0; me < wanted; me++)
				sum += all->result[me];
			figure(many ? "all" : "one", names[kernel], sum, "MB/s");
		}
		figure(many ? "all" : "one", "_array", mib * 1.048576, "MB");
	}
	pin(cpus[0]);
	for (u32 i = 0; i < sizeof sizes / sizeof *sizes; i++)
		if (sizes[i].kib / 512 <= free_mib)
			figure(sizes[i].name, "", latency(sizes[i].kib * 1024, seconds), "ns");
}

/* A disk: the kernel's asynchronous reads (io_submit), past its cache, four under way. */
#define DEPTH 4
struct request { u64 data; u32 key, flags; unsigned short code; short priority; u32 file; u64 buffer, bytes,
		 offset, unused; u32 more, event; };
struct event { u64 data, request; long long result, result2; };

static double reads(int file, u64 bytes, u32 size, int anywhere, double seconds)
{
	static struct request requests[DEPTH];
	struct event events[DEPTH];
	word context = 0, done = 0;
	u32 blocks = (u32)(size == MIB ? bytes >> 20 : bytes >> 12), next = 0, under_way = 0;
	u8 *buffers = memory((word)DEPTH * size, 0);
	double start, stop, ended;

	if (call(IO_SETUP, DEPTH, &context, 0) < 0)
		leave(1, "the kernel has no asynchronous reads (CONFIG_AIO)");
	if (!blocks)
		leave(1, "the disk is smaller than 1 MiB");
	start = now();
	stop = start + seconds;
	ended = start;
	for (int i = 0; i < DEPTH; i++)
		requests[i].data = i + 1;	/* free */
	for (;;) {
		long came;

		for (int i = 0; i < DEPTH && now() < stop; i++) {
			struct request *one = &requests[i], *list[1] = { one };
			u32 block = anywhere ? below(blocks) : next;

			if (!one->data)
				continue;
			next = next + 1 < blocks ? next + 1 : 0;
			one->data = 0;
			one->file = file;
			one->buffer = (u64)(word)(buffers + (word)i * size);
			one->bytes = size;
			one->offset = size == MIB ? (u64)block << 20 : (u64)block << 12;
			if (call(IO_SUBMIT, context, 1, list) != 1)
				leave(1, "the disk takes no direct read");
			under_way++;
		}
		if (!under_way)
			break;
		came = call6(IO_GETEVENTS, context, 1, DEPTH, (long)events, 0, 0);
		if (came < 1)
			leave(1, "a read does not come back");
		for (long i = 0; i < came; i++) {
			if (events[i].result != size)
				leave(1, "the disk returns an error, or less than was asked for");
			((struct request *)(word)events[i].request)->data = 1;
		}
		under_way -= came;
		done += came;
		ended = now();
	}
	return done / (ended - start);
}

static void disk(const char *device, u32 seconds)
{
	long file = call6(OPENAT, -100, (long)device, O_DIRECT, 0, 0, 0);
	u64 bytes = 0;

	if (file < 0)
		leave(1, "the disk cannot be opened for direct reads");
	if (sizeof(word) == 8)
		bytes = call(LSEEK, file, 0, 2);
	else
		call6(LSEEK, file, 0, 0, (long)&bytes, 2, 0);	/* _llseek */
	figure("sequential", "", reads(file, bytes, MIB, 0, seconds) * 1.048576, "MB/s");
	figure("random", "", reads(file, bytes, 4096, 1, seconds), "1/s");
	figure("size", "", (double)(u32)(bytes >> 20) * 1.048576, "MB");
}

/* The hottest of the kernel's thermal zones, else of its sensors (hwmon), in degrees Celsius; 0 for none. */
static double hottest(void)
{
	static const char *const before[] = { "/sys/class/thermal/thermal_zone", "/sys/class/hwmon/hwmon" };
	static const char *const after[] = { "/temp", "/temp1_input" };
	double most = 0;

	for (int kind = 0; kind < 2 && !most; kind++)
		for (u32 n = 0; n < 40; n++) {
			char path[80], text[16], *at = path;
			const char *part;
			long file, got;
			u32 value = 0;

			for (part = before[kind]; *part;)
				*at++ = *part++;
			if (n > 9)
				*at++ = '0' + n / 10;
			*at++ = '0' + n % 10;
			for (part = after[kind]; *part;)
				*at++ = *part++;
			*at = 0;
			file = call6(OPENAT, -100, (long)path, 0, 0, 0, 0);
			if (file < 0)
				continue;
			got = call(READ, file, text, sizeof text);
			call(CLOSE, file, 0, 0);
			for (long i = 0; i < got && text[i] >= '0' && text[i] <= '9'; i++)
				value = value * 10 + (text[i] - '0');
			/* Others are a sensor that is off, or of another unit. */
			if (value > 1000 && value < 150000 && value / 1000.0 > most)
				most = value / 1000.0;
		}
	return most;
}

static void busy(struct shared *all, u32 me)
{
	double begun = now(), start, took;

	all->last[me] = 0;
	do {
		u32 count = 0;

		start = now();
		do {
			additions(10);
			count += 10;
		} while ((took = now() - start) < 1.0);
		all->last[me] = count / took / 10;	/* 10^5 additions each, in 10^6 */
		if (!all->result[me])
			all->result[me] = all->last[me];
	} while (now() - begun < for_seconds);
}

static void load(u32 seconds)
{
	struct shared *all;
	double before = hottest(), peak = before, stop, first = 1e9, last = 1e9;

	for_seconds = seconds;
	all = on_cpus(how_many, busy);
	for (stop = now() + seconds; now() < stop;) {
		double value = hottest();

		if (value > peak)
			peak = value;
		sleep_ms(250);
	}
	wait_for(how_many);
	for (u32 me = 0; me < how_many; me++) {
		if (all->result[me] < first)
			first = all->result[me];
		if (all->last[me] < last)
			last = all->last[me];
	}
	figure("clock_first", "", first, "MHz");
	figure("clock_last", "", last, "MHz");
	if (peak) {
		figure("temperature_before", "", before, "\302\260C");
		figure("temperature_peak", "", peak, "\302\260C");
		sleep_ms(5000);
		figure("temperature_after", "", hottest(), "\302\260C");
	}
	figure("cpus", "", how_many, "CPUs");
}

__attribute__((used, noreturn)) void begin(word *stack)
{
	word count = *stack;
	char **words = (char **)(stack + 1);
	const char *what = count > 1 ? words[1] : "";

	find_cpus();
	print(1, "evmperf-gauge 1\n");
	if (count == 4 && same(what, "disk"))
		disk(words[2], number(words[3]));
	else if (count == 3 && same(what, "memory"))
		all_memory(number(words[2]));
	else if (count == 3 && same(what, "cpu"))
		cpu(number(words[2]));
	else if (count == 3 && same(what, "load"))
		load(number(words[2]));
	else
		number("");
	print(1, "end\n");
	leave(0, 0);
	for (;;)
		;
}
