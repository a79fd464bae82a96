/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Adaptive pacing in integers: computes the interval between two segments from RTT samples.
 *
 * AP05 (ElRakabawy, Klemm, Lindemann, MobiHoc 2005), sections 4.2 to 4.4, with h hops, channel rate
 * b, sizes s_d and s_a:
 *
 *     FHD  = n/2 (RTT/h + 8 (s_d - s_a)/b)        n = min(4, h)
 *
 * AP10 (ElRakabawy, Lindemann, 2010), section 4, equations 13 and 14, with H_cs, t_LLD and t_LLA:
 *
 *     t_q  = 1/2 (RTT/h - 8 (S_data + S_ACK)/b - t_LLD - t_LLA), at least 0
 *     OID  = min(H_cs + 1, h) (t_q + 8 S_data/b)
 *
 * Both: D^ = 0.7 D^ + 0.3 D and IPD = D^ (1 + 2 cov), where D is FHD or OID and cov is taken over
 * the last 50 RTTs with divisor N - 1. Sizes are those of meshpace's own transports: payload + 40
 * and 40 bytes in AP05, payload and 40 bytes in AP10.
 *
 * The factor before cov is a parameter, 2 in both papers. Departures: RTTs are whole microseconds,
 * at most 60 s. Delays are whole nanoseconds. cov has 20 binary digits after the point. The kernel
 * has no floating point, and the verifier follows every branch, so the square root is computed by
 * Newton's method with a fixed number of steps.
 */
#ifndef MESHPACE_PACING_H
#define MESHPACE_PACING_H

#include "path.h"

#define HISTORY 50
#define ACK_BYTES 40
#define COV_DIGITS 20

enum form { AP05 = 0, AP10 = 1 };

/* State of the estimator of one connection. */
struct estimator {
	__u64 delay_ns;    /* smoothed delay, FHD^ or OID^ */
	__u64 interval_ns; /* interval between two segments, IPD */
	__u64 sum_us;      /* sum of the RTTs in the history */
	__u64 squares;     /* sum of the squares of the RTTs in the history, us^2 */
	__u64 samples;     /* number of samples so far */
	__u32 cov;         /* coefficient of variation, COV_DIGITS binary digits after the point */
	__u32 next;        /* index of the next sample in the history */
	__u32 rtt_us[HISTORY];
};

/* Returns the square root of x < 2^62, rounded down to a whole number. */
static __always_inline __u64 square_root(__u64 x)
{
	__u64 root = 1ULL << 31;

#pragma unroll
	for (int step = 0; step < 36; step++) {
		/* In BPF a division by zero yields zero, which is the correct root of x = 0. */
		root = (root + x / root) >> 1;
		/* Hides the value from the compiler, which would reason about the steps, and from the verifier,
		 * which would follow it. */
		asm volatile("" : "+r"(root));
	}
	if (root * root > x)
		root--;
	return root;
}

/* Returns the coefficient of variation of `count` samples: sqrt((count squares - sum^2) count /
 * (count - 1)) / sum. */
static __always_inline __u32 variation(__u64 count, __u64 sum, __u64 squares)
{
	__u64 spread = count * squares - sum * sum;
	__u32 digits = COV_DIGITS;

	if (count < 2 || sum == 0)
		return 0;
	/* The square root of a small spread is computed with ten more binary digits. */
	if (spread < 1ULL << 40) {
		spread <<= 20;
		digits -= 10;
	}
	return (square_root(spread + spread / (count - 1)) << digits) / sum;
}

/* Returns the n-hop delay (AP05) or the out-of-interference delay (AP10) that follows from one RTT,
 * ns. */
static __always_inline __u64 delay_sample(const struct path *path, __u32 form, __u32 payload, __u64 rtt_us)
{
	__u64 hops = path->hops;
	__u64 rtt_ns = rtt_us * 1000;
	__u64 n, sent, spent, queueing;

	if (form == AP05) {
		/* s_d - s_a is the payload: the headers of data and ACK cancel. */
		n = hops < REUSE_HOPS ? hops : REUSE_HOPS;
		return n * rtt_ns / (2 * hops) + n * payload * 4000000000ULL / path->rate_bps;
	}
	n = path->sensing && path->sensing < hops ? path->sensing + 1 : hops;
	sent = payload * 8000000000ULL / path->rate_bps;
	spent = (payload + ACK_BYTES) * 8000000000ULL / path->rate_bps + path->link_data_ns + path->link_ack_ns;
	queueing = rtt_ns / hops > spent ? (rtt_ns / hops - spent) / 2 : 0;
	return n * (queueing + sent);
}

/* Adds one RTT sample of a connection with segments of `payload` bytes. */
static __always_inline void take_sample(struct estimator *estimator, const struct path *path,
					const struct settings *settings, __u32 payload, __u32 rtt_us)
{
	__u64 rtt = rtt_us < LONGEST_RTT_US ? rtt_us : LONGEST_RTT_US;
	__u64 sample = delay_sample(path, settings->form, payload, rtt);
	__u32 place = estimator->next;
	__u64 count, old, high, low;

	if (place >= HISTORY)
		place = 0;
	/* Entries that are not yet used hold 0 and change nothing. */
	old = estimator->rtt_us[place];
	estimator->rtt_us[place] = rtt;
	estimator->next = place + 1;
	estimator->sum_us += rtt - old;
	estimator->squares += rtt * rtt - old * old;
	estimator->delay_ns = estimator->samples ? (7 * estimator->delay_ns + 3 * sample) / 10 : sample;
	estimator->samples++;
	count = estimator->samples < HISTORY ? estimator->samples : HISTORY;
	estimator->cov = variation(count, estimator->sum_us, estimator->squares);

	/* D^ (1 + factor cov), computed in two parts, which cannot overflow. */
	high = estimator->delay_ns >> COV_DIGITS;
	low = estimator->delay_ns & ((1ULL << COV_DIGITS) - 1);
	high = high * estimator->cov + (low * estimator->cov >> COV_DIGITS);
	estimator->interval_ns = estimator->delay_ns + high * settings->factor / 100;
}

#endif
