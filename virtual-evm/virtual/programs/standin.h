/* What evmperf's stand-ins for benchmark programs share: clock, command line, output.
 *
 *     PROGRAM [SECONDS]     measures each figure for at least so long (default 1)
 *     PROGRAM --version     says what this is
 *
 * Output: "PROGRAM VERSION", then "NAME VALUE UNIT" a line, then "end". A result that is wrong
 * ends the program with status 1 and a sentence.
 */
#ifndef STANDIN_H
#define STANDIN_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define VERSION "1"

static inline double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec * 1e-9;
}

/* Print the first line and return how many seconds each figure shall take. */
static inline double begin(int argc, char **argv, const char *program)
{
	double seconds = argc > 1 ? atof(argv[1]) : 1.0;

	if (argc > 1 && !strcmp(argv[1], "--version")) {
		printf("%s %s (gcc %s)\n", program, VERSION, __VERSION__);
		exit(0);
	}
	if (argc > 2 || seconds <= 0) {
		fprintf(stderr, "usage: %s [SECONDS | --version]\n", program);
		exit(2);
	}
	printf("%s %s\n", program, VERSION);
	return seconds;
}

static inline void figure(const char *name, double value, const char *unit)
{
	printf("%s %.9g %s\n", name, value, unit);
}

static inline void expect(int right, const char *what)
{
	if (!right) {
		fprintf(stderr, "%s gave a wrong result\n", what);
		exit(1);
	}
}

/* Call work(count) with growing counts until one call takes at least `seconds`; return how many
 * counts a second the last one did.
 */
static inline double rate(void (*work)(long count), double seconds)
{
	for (long count = 1;; count *= 2) {
		double start = now();

		work(count);
		double took = now() - start;

		if (took >= seconds)
			return count / took;
		/* Far from the end, jump to where the next call is likely to be long enough. */
		if (took > seconds / 64)
			count = count * (seconds / took) * 0.6 + 1;
	}
}

#endif
