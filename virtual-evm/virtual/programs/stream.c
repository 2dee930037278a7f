/* Stand-in for STREAM: the rates of copy, scale, add and triad over arrays of doubles, the best of
 * the passes. Bytes are counted as STREAM does: 16 an element for copy and scale, 24 for the
 * others; a megabyte is 10^6 bytes.
 */
#include "standin.h"

#define LENGTH 2000000 /* 16 MB an array: more than any cache of these parts */
#define PASSES 3       /* at least */

static double a[LENGTH], b[LENGTH], c[LENGTH];

static void __attribute__((noinline)) copy(void)
{
	for (long i = 0; i < LENGTH; i++)
		c[i] = a[i];
}

static void __attribute__((noinline)) scale(void)
{
	for (long i = 0; i < LENGTH; i++)
		b[i] = 3.0 * c[i];
}

static void __attribute__((noinline)) add(void)
{
	for (long i = 0; i < LENGTH; i++)
		c[i] = a[i] + b[i];
}

static void __attribute__((noinline)) triad(void)
{
	for (long i = 0; i < LENGTH; i++)
		a[i] = b[i] + 3.0 * c[i];
}

static const struct {
	const char *name;
	void (*run)(void);
	int bytes;
} kernels[] = { { "copy", copy, 16 }, { "scale", scale, 16 }, { "add", add, 24 }, { "triad", triad, 24 } };

int main(int argc, char **argv)
{
	double seconds = begin(argc, argv, "evmperf-stream");
	double best[4] = { 0 }, stop;
	int pass;

	stop = now() + seconds;
	for (pass = 0; pass < PASSES || now() < stop; pass++) {
		for (long i = 0; i < LENGTH; i++)
			a[i] = 1.0;
		for (int k = 0; k < 4; k++) {
			double start = now();

			kernels[k].run();
			double mb_s = (double)kernels[k].bytes * LENGTH / (now() - start) / 1e6;

			/* The first pass touches the pages; STREAM leaves it out, too. */
			if (pass && mb_s > best[k])
				best[k] = mb_s;
		}
		/* c = a, b = 3 c, c = a + b, a = b + 3 c, from 1 */
		expect(a[0] == 15.0 && a[LENGTH - 1] == 15.0, "the arrays");
	}
	for (int k = 0; k < 4; k++)
		figure(kernels[k].name, best[k], "MB/s");
	puts("end");
	return 0;
}
