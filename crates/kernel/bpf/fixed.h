/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Powers of two and logarithms in fixed point, with 32 binary digits after the point. The kernel
 * has no floating point.
 *
 * The two larger functions are global functions. The verifier checks a global function once, and
 * not again at every call with the values known there.
 */
#ifndef MESHPACE_FIXED_H
#define MESHPACE_FIXED_H

#define ONE (1ULL << 32)
#define LN_2 2977044472ULL      /* ln 2, 32 binary digits */
#define LOG2_E_31 3098164009ULL /* 1 / ln 2, 31 binary digits */

/* Returns 2^-x. */
__noinline __u64 halved(__u64 x)
{
	__u64 z = (x & (ONE - 1)) * LN_2 >> 32;
	__u64 power = ONE;

	if (x >> 32 > 32)
		return 0;
	/* e^-z = 1 - z/1 (1 - z/2 (1 - z/3 ...)), z < 0.7. The truncation error is less than 1e-7. */
#pragma unroll
	for (int term = 8; term >= 1; term--)
		power = ONE - (z * power >> 32) / term;
	return power >> (x >> 32);
}

/* Returns the logarithm to the base of 2 of a whole number; 0 for 0. */
__noinline __u64 logarithm(__u64 x)
{
	__u64 digits = 63, z, square, sum;

	if (!x)
		return 0;
#pragma unroll
	for (int step = 32; step >= 1; step /= 2) {
		if (!(x >> (64 - step))) {
			x <<= step;
			digits -= step;
		}
	}
	/* x is m 2^63, and ln m = 2 (z + z^3/3 + z^5/5 + ...) with z = (m - 1)/(m + 1), at most 1/3. */
	x >>= 31;
	z = ((x - ONE) << 31) / (x + ONE);
	square = z * z >> 31;
	sum = (1ULL << 31) / 15;
#pragma unroll
	for (int term = 13; term >= 1; term -= 2)
		sum = (1ULL << 31) / term + (square * sum >> 31);
	sum = z * sum >> 31;
	return (digits << 32) + (sum * LOG2_E_31 >> 29);
}

/* Returns 2^x, rounded down to a whole number. x is less than 62. */
static __always_inline __u64 power(__u64 x)
{
	__u64 digits = x >> 32;
	/* Uses 2^f = 2 * 2^-(1 - f). */
	__u64 part = 2 * halved(ONE - (x & (ONE - 1)));

	return digits >= 32 ? part << (digits - 32) : part >> (32 - digits);
}

#endif
