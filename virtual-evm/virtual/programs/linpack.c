/* Stand-in for Linpack: LU decomposition with partial pivoting and solution of a dense system of
 * 100 equations in double precision. 2/3 n^3 + 2 n^2 operations a system, as LINPACK counts them.
 */
#include <math.h>

#include "standin.h"

#define N 100

static double a[N][N], b[N], x[N];
static int pivot[N];

/* Fill the system with numbers between -0.5 and 0.5, the same every time, whose solution is 1. */
static void generate(void)
{
	unsigned state = 1325;

	memset(b, 0, sizeof b);
	for (int i = 0; i < N; i++) {
		for (int j = 0; j < N; j++) {
			state = state * 3125 % 65536;
			a[i][j] = (state - 32768.0) / 65536.0;
			b[i] += a[i][j];
		}
	}
}

static void axpy(int n, double factor, const double *from, double *to)
{
	for (int i = 0; i < n; i++)
		to[i] += factor * from[i];
}

static void decompose(void)
{
	for (int k = 0; k < N; k++) {
		int best = k;

		for (int i = k + 1; i < N; i++)
			if (fabs(a[i][k]) > fabs(a[best][k]))
				best = i;
		pivot[k] = best;
		if (best != k) {
			for (int j = 0; j < N; j++) {
				double keep = a[k][j];

				a[k][j] = a[best][j];
				a[best][j] = keep;
			}
		}
		for (int i = k + 1; i < N; i++) {
			a[i][k] /= a[k][k];
			axpy(N - k - 1, -a[i][k], &a[k][k + 1], &a[i][k + 1]);
		}
	}
}

static void solve(void)
{
	memcpy(x, b, sizeof x);
	for (int k = 0; k < N; k++) {
		double keep = x[pivot[k]];

		x[pivot[k]] = x[k];
		x[k] = keep;
	}
	for (int i = 0; i < N; i++)
		for (int j = 0; j < i; j++)
			x[i] -= a[i][j] * x[j];
	for (int i = N - 1; i >= 0; i--) {
		for (int j = i + 1; j < N; j++)
			x[i] -= a[i][j] * x[j];
		x[i] /= a[i][i];
	}
}

static void filling(long count)
{
	while (count--)
		generate();
}

static void filling_and_solving(long count)
{
	while (count--) {
		generate();
		decompose();
		solve();
	}
}

int main(int argc, char **argv)
{
	double seconds = begin(argc, argv, "evmperf-linpack");
	/* Filling the matrix is no part of the work, and taken off. */
	double fill_s = 1 / rate(filling, seconds / 4);
	double whole_s = 1 / rate(filling_and_solving, seconds);

	for (int i = 0; i < N; i++)
		expect(fabs(x[i] - 1.0) < 1e-9, "the solution");
	expect(whole_s > fill_s, "the clock");
	figure("linpack", (2.0 / 3.0 * N * N * N + 2.0 * N * N) / (whole_s - fill_s) / 1000, "kflops");
	puts("end");
	return 0;
}
