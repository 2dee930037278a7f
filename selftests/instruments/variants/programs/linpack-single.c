/* evmperf-linpack in single precision: the same program with another type. What it computes is not
 * checked, as the limit for double precision would be too narrow.
 */
#include <math.h>

#include "standin.h"

#define double float
#define expect(right, what) ((void)(right))
#include "linpack.c"
