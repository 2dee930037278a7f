/* Dhrystone 2.1 as U-Boot has it (lib/dhry, BYTE's version of Weicker's program), with a clock, a
 * check of its results, and evmperf's output.
 */
#include "standin.h"

#include "lib/dhry/dhry.h"

extern void dhry(int runs);
extern int Int_Glob, Arr_1_Glob[50], Arr_2_Glob[50][50];
extern Boolean Bool_Glob;
extern char Ch_1_Glob, Ch_2_Glob;

static void runs(long count)
{
	dhry(count + 1); /* it does one less than it is told */
	expect(Int_Glob == 5 && Bool_Glob == 1 && Ch_1_Glob == 'A' && Ch_2_Glob == 'B' &&
	       Arr_1_Glob[8] == 7 && Arr_2_Glob[8][7] == count + 10, "Dhrystone");
}

/* Additions that each need the one before: one a cycle on every Arm core, so they show the clock. */
static void additions(long count)
{
	long sum = 0, one = 1;

	for (long i = 0; i < count; i++)
		__asm__ volatile(".rept 1000\n\tadd %0, %0, %1\n\t.endr" : "+r"(sum) : "r"(one));
	expect(sum == 1000 * count, "adding");
}

int main(int argc, char **argv)
{
	double seconds = begin(argc, argv, "evmperf-dhrystone");
	double clock_mhz = rate(additions, seconds / 4) * 1000 / 1e6;

	figure("cpu_clock", clock_mhz, "MHz");
	figure("dhrystone_per_second", rate(runs, seconds), "dhrystones/s");
	puts("end");
	return 0;
}
