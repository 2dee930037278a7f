/* Stand-in for NBench: nine kernels of the kinds that BYTEmark has, each our own and checked. Their
 * iterations are not NBench's, so their rates cannot be compared with it.
 */
#include <math.h>
#include <stdint.h>

#include "standin.h"

static uint32_t state;

/* Numbers that are the same every time (Knuth's linear congruential generator). */
static uint32_t next(void)
{
	state = state * 1664525u + 1013904223u;
	return state >> 8;
}

/* numeric_sort: heap sort of 8111 integers */

#define SORTED 8111

static int numbers[SORTED];

static void sift(int from, int end)
{
	for (int child; (child = 2 * from + 1) < end; from = child) {
		if (child + 1 < end && numbers[child + 1] > numbers[child])
			child++;
		if (numbers[from] >= numbers[child])
			return;
		int keep = numbers[from];

		numbers[from] = numbers[child];
		numbers[child] = keep;
	}
}

static void numeric_sort(long count)
{
	while (count--) {
		state = 13;
		for (int i = 0; i < SORTED; i++)
			numbers[i] = next();
		for (int i = SORTED / 2; i-- > 0;)
			sift(i, SORTED);
		for (int i = SORTED - 1; i > 0; i--) {
			int keep = numbers[0];

			numbers[0] = numbers[i];
			numbers[i] = keep;
			sift(0, i);
		}
		for (int i = 1; i < SORTED; i++)
			expect(numbers[i - 1] <= numbers[i], "numeric_sort");
	}
}

/* string_sort: merge sort of 400 strings of 4 to 35 characters */

#define STRINGS 400

static char strings[STRINGS][36];
static char *order[STRINGS], *merged[STRINGS];

static void merge_sort(int from, int end)
{
	int middle = (from + end) / 2, left = from, right = middle;

	if (end - from < 2)
		return;
	merge_sort(from, middle);
	merge_sort(middle, end);
	for (int i = from; i < end; i++) {
		int take_left = right >= end ||
				(left < middle && strcmp(order[left], order[right]) <= 0);

		merged[i] = take_left ? order[left++] : order[right++];
	}
	memcpy(order + from, merged + from, (end - from) * sizeof *order);
}

static void string_sort(long count)
{
	while (count--) {
		state = 17;
		for (int i = 0; i < STRINGS; i++) {
			int length = 4 + next() % 32;

			for (int at = 0; at < length; at++)
				strings[i][at] = 'A' + next() % 58;
			strings[i][length] = 0;
			order[i] = strings[i];
		}
		merge_sort(0, STRINGS);
		for (int i = 1; i < STRINGS; i++)
			expect(strcmp(order[i - 1], order[i]) <= 0, "string_sort");
	}
}

/* fp_emulation: multiplying and adding floating-point numbers with integers only */

struct soft {
	uint64_t mantissa; /* bit 31 set, or 0 */
	int exponent;
};

static struct soft normal(uint64_t mantissa, int exponent)
{
	if (!mantissa)
		return (struct soft){ 0, 0 };
	for (; mantissa >> 32; exponent++)
		mantissa >>= 1;
	for (; !(mantissa >> 31); exponent--)
		mantissa <<= 1;
	return (struct soft){ mantissa, exponent };
}

static struct soft multiply(struct soft x, struct soft y)
{
	return normal(x.mantissa * y.mantissa, x.exponent + y.exponent);
}

static struct soft plus(struct soft x, struct soft y)
{
	if (x.exponent < y.exponent) {
		struct soft keep = x;

		x = y;
		y = keep;
	}
	int shift = x.exponent - y.exponent;

	return normal(x.mantissa + (shift < 64 ? y.mantissa >> shift : 0), x.exponent);
}

static void fp_emulation(long count)
{
	while (count--) {
		/* 1 + 1/2 + 1/4 + ... = 2 */
		struct soft sum = normal(1, 0), term = normal(1, 0), half = normal(1, -1);

		for (int i = 0; i < 200; i++) {
			term = multiply(term, half);
			sum = plus(sum, term);
		}
		expect(fabs(ldexp(sum.mantissa, sum.exponent) - 2) < 1e-6, "fp_emulation");
	}
}

/* fourier: 19 coefficients of (x + 1)^x on [0, 2], by the trapezoid rule with 200 steps */

static double product(double x, double omega, int sine)
{
	double f = pow(x + 1, x);

	return f * (sine ? sin(omega * x) : cos(omega * x));
}

static double coefficient(double omega, int sine)
{
	double sum = (product(0, omega, sine) + product(2, omega, sine)) / 2;

	for (int i = 1; i < 200; i++)
		sum += product(i * 0.01, omega, sine);
	return sum * 0.01;
}

static void fourier(long count)
{
	while (count--) {
		double first = coefficient(0, 0) / 2, sum = 0;

		for (int n = 1; n < 10; n++)
			sum += coefficient(n * M_PI, 0) + coefficient(n * M_PI, 1);
		expect(fabs(first - 2.88198) < 1e-4 && isfinite(sum), "fourier");
	}
}

/* assignment: cheapest assignment of 50 workers to 50 tasks, by the Hungarian method */

#define TASKS 50

static int cost[TASKS + 1][TASKS + 1];

static void assign(int *worker_of, long *total)
{
	long u[TASKS + 1] = { 0 }, v[TASKS + 1] = { 0 };
	int way[TASKS + 1];

	memset(worker_of, 0, (TASKS + 1) * sizeof *worker_of);
	for (int i = 1; i <= TASKS; i++) {
		long least[TASKS + 1];
		char used[TASKS + 1] = { 0 };
		int at = 0;

		for (int j = 0; j <= TASKS; j++)
			least[j] = INT32_MAX;
		worker_of[0] = i;
		do {
			long delta = INT32_MAX;
			int worker = worker_of[at], to = 0;

			used[at] = 1;
			for (int j = 1; j <= TASKS; j++) {
				if (used[j])
					continue;
				long reduced = cost[worker][j] - u[worker] - v[j];

				if (reduced < least[j]) {
					least[j] = reduced;
					way[j] = at;
				}
				if (least[j] < delta) {
					delta = least[j];
					to = j;
				}
			}
			for (int j = 0; j <= TASKS; j++) {
				if (used[j]) {
					u[worker_of[j]] += delta;
					v[j] -= delta;
				} else {
					least[j] -= delta;
				}
			}
			at = to;
		} while (worker_of[at]);
		for (; at; at = way[at])
			worker_of[at] = worker_of[way[at]];
	}
	*total = -v[0];
}

static void assignment(long count)
{
	while (count--) {
		int worker_of[TASKS + 1];
		long total, sum = 0;

		state = 19;
		for (int i = 1; i <= TASKS; i++)
			for (int j = 1; j <= TASKS; j++)
				cost[i][j] = next() % 10000;
		assign(worker_of, &total);
		for (int j = 1; j <= TASKS; j++)
			sum += cost[worker_of[j]][j];
		expect(sum == total, "assignment");
	}
}

/* idea: encrypting and decrypting 4000 bytes with the block cipher of that name */

static uint16_t times(uint16_t x, uint16_t y)
{
	uint32_t product = (uint32_t)x * y;

	if (!product)
		return 1 - x - y;
	uint16_t low = product, high = product >> 16;

	return low - high + (low < high);
}

/* x^65535 = 1/x modulo 65537, for 65537 is prime and the group's order 65536. */
static uint16_t inverse(uint16_t x)
{
	uint16_t result = 1;

	for (int i = 0; i < 16; i++) {
		result = times(result, x);
		x = times(x, x);
	}
	return result;
}

static void cipher(uint16_t *block, const uint16_t *key)
{
	uint16_t a = block[0], b = block[1], c = block[2], d = block[3];

	for (int round = 0; round < 8; round++, key += 6) {
		a = times(a, key[0]);
		b += key[1];
		c += key[2];
		d = times(d, key[3]);
		uint16_t e = times(a ^ c, key[4]), f = times((b ^ d) + e, key[5]);

		e += f;
		a ^= f;
		d ^= e;
		uint16_t keep = b ^ e;

		b = c ^ f;
		c = keep;
	}
	block[0] = times(a, key[0]);
	block[1] = c + key[1];
	block[2] = b + key[2];
	block[3] = times(d, key[3]);
}

static void key_schedule(const uint16_t *user, uint16_t *key, uint16_t *back)
{
	memcpy(key, user, 16);
	for (int i = 8; i < 52; i++) {
		/* The 128 bits of the key turned left by 25, for every eight sub-keys. */
		int turn = i - i % 8 - 8;

		key[i] = key[turn + (i + 1) % 8] << 9 | key[turn + (i + 2) % 8] >> 7;
	}
	for (int round = 0; round <= 8; round++) {
		const uint16_t *from = key + 48 - 6 * round;
		uint16_t *to = back + 6 * round;
		int swapped = round > 0 && round < 8;

		to[0] = inverse(from[0]);
		to[1] = -from[swapped ? 2 : 1];
		to[2] = -from[swapped ? 1 : 2];
		to[3] = inverse(from[3]);
		if (round < 8) {
			to[4] = from[-2];
			to[5] = from[-1];
		}
	}
}

static void idea(long count)
{
	/* Lai's published test vector. */
	static const uint16_t user[8] = { 1, 2, 3, 4, 5, 6, 7, 8 };
	static const uint16_t known[4] = { 0x11fb, 0xed2b, 0x0198, 0x6de5 };
	uint16_t key[52], back[52], text[2000];

	key_schedule(user, key, back);
	while (count--) {
		for (int i = 0; i < 2000; i++)
			text[i] = i % 4;
		for (int i = 0; i < 2000; i += 4)
			cipher(text + i, key);
		expect(!memcmp(text, known, 8), "idea");
		for (int i = 0; i < 2000; i += 4)
			cipher(text + i, back);
		expect(text[1] == 1 && text[1999] == 3, "idea");
	}
}

/* huffman: packing and unpacking 5000 bytes of a text of 32 letters of unequal frequency */

#define TEXT 5000
#define LETTERS 32

static unsigned char text[TEXT], packed[TEXT], unpacked[TEXT];

static void huffman(long count)
{
	while (count--) {
		long weight[2 * LETTERS] = { 0 };
		int parent[2 * LETTERS] = { 0 }, children[2 * LETTERS][2], nodes = LETTERS, root;
		long bits = 0, at = 0;

		state = 23;
		for (int i = 0; i < TEXT; i++)
			weight[text[i] = next() % LETTERS & next() % LETTERS]++;
		for (;; nodes++) {
			int low[2] = { -1, -1 };

			for (int i = 0; i < nodes; i++) {
				if (!weight[i] || parent[i])
					continue;
				if (low[0] < 0 || weight[i] < weight[low[0]]) {
					low[1] = low[0];
					low[0] = i;
				} else if (low[1] < 0 || weight[i] < weight[low[1]]) {
					low[1] = i;
				}
			}
			root = low[0];
			if (low[1] < 0)
				break;
			weight[nodes] = weight[low[0]] + weight[low[1]];
			for (int side = 0; side < 2; side++) {
				parent[low[side]] = nodes;
				children[nodes][side] = low[side];
			}
		}
		memset(packed, 0, sizeof packed);
		for (int i = 0; i < TEXT; i++) {
			char code[LETTERS];
			int length = 0;

			for (int node = text[i]; node != root; node = parent[node])
				code[length++] = children[parent[node]][1] == node;
			while (length--) {
				packed[bits / 8] |= code[length] << bits % 8;
				bits++;
			}
		}
		for (int i = 0; i < TEXT; i++) {
			int node = root;

			for (; node >= LETTERS; at++)
				node = children[node][packed[at / 8] >> at % 8 & 1];
			unpacked[i] = node;
		}
		expect(at == bits && !memcmp(text, unpacked, TEXT), "huffman");
	}
}

/* neural_net: a 35-8-8 net learns 26 patterns by back-propagation for 20 passes */

#define IN 35
#define MID 8
#define OUT 8
#define PATTERNS 26

static double sigmoid(double x)
{
	return 1 / (1 + exp(-x));
}

static void neural_net(long count)
{
	while (count--) {
		double first[MID][IN], second[OUT][MID], before = 0, error = 0;

		state = 29;
		for (int i = 0; i < MID * IN; i++)
			first[i / IN][i % IN] = next() % 1000 / 1000.0 - 0.5;
		for (int i = 0; i < OUT * MID; i++)
			second[i / MID][i % MID] = next() % 1000 / 1000.0 - 0.5;
		for (int pass = 0; pass < 20; pass++) {
			error = 0;
			state = 31;
			for (int p = 0; p < PATTERNS; p++) {
				double in[IN], mid[MID], out[OUT], delta[OUT];

				for (int i = 0; i < IN; i++)
					in[i] = next() & 16 ? 0.9 : 0.1;
				for (int m = 0; m < MID; m++) {
					double sum = 0;

					for (int i = 0; i < IN; i++)
						sum += first[m][i] * in[i];
					mid[m] = sigmoid(sum);
				}
				for (int o = 0; o < OUT; o++) {
					double sum = 0, want = ('A' + p) >> o & 1 ? 0.9 : 0.1;

					for (int m = 0; m < MID; m++)
						sum += second[o][m] * mid[m];
					out[o] = sigmoid(sum);
					error += (want - out[o]) * (want - out[o]);
					delta[o] = (want - out[o]) * out[o] * (1 - out[o]);
				}
				for (int m = 0; m < MID; m++) {
					double back = 0;

					for (int o = 0; o < OUT; o++) {
						back += delta[o] * second[o][m];
						second[o][m] += 0.5 * delta[o] * mid[m];
					}
					for (int i = 0; i < IN; i++)
						first[m][i] += 0.5 * back * mid[m] * (1 - mid[m]) * in[i];
				}
			}
			if (!pass)
				before = error;
		}
		expect(error < 0.9 * before, "neural_net");
	}
}

/* lu_decomposition: solving 101 equations */

#define ROWS 101

static double matrix[ROWS][ROWS], right[ROWS];

static void lu_decomposition(long count)
{
	while (count--) {
		state = 37;
		for (int i = 0; i < ROWS; i++) {
			right[i] = 0;
			for (int j = 0; j < ROWS; j++) {
				/* A heavy diagonal makes pivoting unnecessary. */
				matrix[i][j] = next() % 1000 / 1000.0 + (i == j) * ROWS;
				right[i] += matrix[i][j];
			}
		}
		for (int k = 0; k < ROWS; k++)
			for (int i = k + 1; i < ROWS; i++) {
				double factor = matrix[i][k] / matrix[k][k];

				for (int j = k; j < ROWS; j++)
					matrix[i][j] -= factor * matrix[k][j];
				right[i] -= factor * right[k];
			}
		for (int i = ROWS - 1; i >= 0; i--) {
			for (int j = i + 1; j < ROWS; j++)
				right[i] -= matrix[i][j] * right[j];
			right[i] /= matrix[i][i];
			expect(fabs(right[i] - 1) < 1e-9, "lu_decomposition");
		}
	}
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*work)(long count);
	} kernels[] = {
		{ "assignment", assignment },
		{ "fourier", fourier },
		{ "fp_emulation", fp_emulation },
		{ "huffman", huffman },
		{ "idea", idea },
		{ "lu_decomposition", lu_decomposition },
		{ "neural_net", neural_net },
		{ "numeric_sort", numeric_sort },
		{ "string_sort", string_sort },
	};
	double seconds = begin(argc, argv, "evmperf-nbench");

	for (unsigned k = 0; k < sizeof kernels / sizeof *kernels; k++)
		figure(kernels[k].name, rate(kernels[k].work, seconds), "iterations/s");
	puts("end");
	return 0;
}
