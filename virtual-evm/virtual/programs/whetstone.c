/* Stand-in for Whetstone: the eight modules that Curnow and Wichmann's "A synthetic benchmark"
 * (The Computer Journal 19, 1976) weighs above zero, in double precision. One loop stands for
 * 100 000 Whetstone instructions. Timed in nanoseconds, not in whole seconds.
 */
#include <math.h>

#include "standin.h"

#define T 0.499975
#define T1 0.50025
#define T2 2.0

static double e[4];
static int j, k, l;
static volatile double sink;

static void start_array(void)
{
	e[0] = 1.0;
	e[1] = e[2] = e[3] = -1.0;
}

static void array_elements(long n)
{
	start_array();
	while (n--) {
		e[0] = (e[0] + e[1] + e[2] - e[3]) * T;
		e[1] = (e[0] + e[1] - e[2] + e[3]) * T;
		e[2] = (e[0] - e[1] + e[2] + e[3]) * T;
		e[3] = (-e[0] + e[1] + e[2] + e[3]) * T;
	}
}

static void __attribute__((noinline)) six_times(double *p)
{
	for (int i = 0; i < 6; i++) {
		p[0] = (p[0] + p[1] + p[2] - p[3]) * T;
		p[1] = (p[0] + p[1] - p[2] + p[3]) * T;
		p[2] = (p[0] - p[1] + p[2] + p[3]) * T;
		p[3] = (-p[0] + p[1] + p[2] + p[3]) / T2;
	}
}

static void array_parameter(long n)
{
	start_array();
	while (n--)
		six_times(e);
}

static void conditional_jumps(long n)
{
	/* Volatile: nothing but the jumps' outcome keeps a compiler from leaving them out. */
	volatile int jump = 1;

	while (n--) {
		jump = jump == 1 ? 2 : 3;
		jump = jump > 2 ? 0 : 1;
		jump = jump < 1 ? 1 : 0;
	}
}

static void integers(long n)
{
	j = 1;
	k = 2;
	l = 3;
	while (n--) {
		j = j * (k - j) * (l - k);
		k = l * k - (l - j) * k;
		l = (l - k) * (k + j);
		e[l - 2] = j + k + l;
		e[k - 2] = j * k * l;
	}
}

static void trigonometry(long n)
{
	double x = 0.5, y = 0.5;

	while (n--) {
		x = T * atan(T2 * sin(x) * cos(x) / (cos(x + y) + cos(x - y) - 1.0));
		y = T * atan(T2 * sin(y) * cos(y) / (cos(x + y) + cos(x - y) - 1.0));
	}
	sink = x + y;
}

static void __attribute__((noinline)) call_with_three(double x, double y, double *z)
{
	x = T * (x + y);
	y = T * (x + y);
	*z = (x + y) / T2;
}

static void procedure_calls(long n)
{
	double z = 1.0;

	while (n--)
		call_with_three(1.0, 1.0, &z);
	sink = z;
}

static void __attribute__((noinline)) call_without(void)
{
	e[j] = e[k];
	e[k] = e[l];
	e[l] = e[j];
}

static void array_references(long n)
{
	j = 1;
	k = 2;
	l = 3;
	e[0] = e[1] = 1.0;
	e[2] = 2.0;
	e[3] = 3.0;
	while (n--)
		call_without();
}

static void standard_functions(long n)
{
	double x = 0.75;

	while (n--)
		x = sqrt(exp(log(x) / T1));
	sink = x;
}

static void loops(long count)
{
	array_elements(12 * count);
	array_parameter(14 * count);
	conditional_jumps(345 * count);
	integers(210 * count);
	expect(j == 1 && k == 2 && l == 3, "integer arithmetic");
	trigonometry(32 * count);
	expect(isfinite(sink), "trigonometry");
	procedure_calls(899 * count);
	expect(fabs(sink - 0.99994) < 1e-4, "the procedure calls");
	array_references(616 * count);
	standard_functions(93 * count);
	expect(sink > 0.7 && sink <= 1.0, "the standard functions");
}

int main(int argc, char **argv)
{
	double seconds = begin(argc, argv, "evmperf-whetstone");

	figure("whetstone", rate(loops, seconds) * 100e3 / 1e6, "MWIPS");
	puts("end");
	return 0;
}
