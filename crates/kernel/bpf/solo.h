/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * `quiet-train-solo` in integers: computes, from the ACKs, the interval between segments and their
 * number in a train.
 *
 * Source: docs/quiet-trains.md, and crates/transport/src/train (solo.rs, control.rs, estimator.rs,
 * peer_clock.rs) with the parameters of the sender alone. h is the number of hops and n = min(4,
 * h). t_d and t_a are the air times of the exchange of a data packet and of an ACK. r is the
 * round-trip time, and f the forward delay, measured with both clocks:
 *
 *     rtt0 = least r, base = least f, both of the last 15 to 30 s
 *     tau  = n/h rtt0 / (1 + t_a/t_d)
 *     d    = mean of (f - base - 0.3 ms h)                  exponential, over max(1 s, 2 I)
 *     floor = tau (h <= 3 ? 1.034 : 1.14)
 *     want  = floor max(1, (d / (0.2 scale tau))^(2/3)) (1 + penalty),  scale = 1 + 0.7 (h/n - 1)
 *     log I += (1 - exp(-0.3 dt)) (log want - log I),  I in [floor, 30 tau]
 *     W     = min(2 W, 16, 1 s / I), an even number
 *
 *     skew = slope of f - r/2 over time                       weighted least squares, taken out of base
 *
 * I is the interval, W the length of a train. While all senders of the path hear each other, W is
 * at most 40 and 1.5 stands in place of 0.2 (solo_is_near).
 *
 * Departures: times are whole nanoseconds. An interval is at most 60 s, and so is the time between
 * two samples that is taken into account. The skew is in whole ppb, computed from times in ms and
 * offsets in us. Of an offset at most 1 s counts.
 */
#ifndef MESHPACE_SOLO_H
#define MESHPACE_SOLO_H

#include "fixed.h"
#include "path.h"

#define US 1000ULL
#define MS 1000000ULL
#define SECOND 1000000000ULL
#define MINUTE (60 * SECOND)
#define NEVER (1ULL << 62)

/* Parameters of the sender alone, with the values of solo.rs and control.rs. */
#define NEAR_HOPS 3
#define NEAR_FLOOR 1034 /* least interval, thousandths of tau */
#define FAR_FLOOR 1140
#define DELAY 200 /* queueing delay tolerated at the floor, thousandths of tau */
#define NEAR_DELAY 1500
#define LENGTH 700     /* growth of the tolerated delay with the length of the path, thousandths */
#define TRAIN 16       /* most segments of a train */
#define NEAR_TRAIN 40
#define FIRST_TRAIN 4
#define SPAN SECOND    /* longest duration of a train */
#define START 1150     /* interval before the first sample, thousandths of n t_d */
#define LONGEST_GAP 1100 /* longest gap between the two segments of a pair, thousandths of n t_d */
#define SLOWEST 30     /* longest interval, multiples of tau */
#define LOSS (ONE / 20)
#define LOSS_APART (SECOND / 2)
#define LOSSLESS MINUTE
#define HORIZON (15 * SECOND)
#define SMOOTHING SECOND
#define HOP_NOISE (300 * US)
#define JUMP ((__s64)SECOND) /* step by which a clock was set, at least */
#define BELIEVED 3000 /* decay of a sample's weight with its RTT above the least RTT, us */
/* Drift of the clocks, as in skew.rs. The prior stands for 20 samples that lie 40 s from their mean
 * time, in the units of the sums. */
#define MEMORY_MS 300000
#define PRIOR ((20ULL << WEIGHT_DIGITS) * 40000 * 40000)
#define SKEW_LIMIT 300000 /* ppb */
#define WEIGHT_DIGITS 10
#define NO_TIMER (30 * (__s64)MS)
#define FEW_PAIRS (15 * ONE / 100)
/* Time of an exchange without the bits of its frame, and bytes of a frame without its packet, as in
 * estimator.rs. */
#define EXCHANGE (1542 * US)
#define FRAME_BYTES 52
#define HEADERS 40
#define ACK_PACKET 52
/* Clocks of peers, as in peer_clock.rs. */
#define CLOCK_SPAN (150 * MS)
#define CLOCK_ATTEMPTS 5

/* Clock of the peer, as its time stamps show it. */
struct peer_clock {
	__u64 first_at; /* time at which the first stamp arrived; 0: none yet */
	__s64 reading;  /* reading of the clock at `last`, ns, counted from an origin of its own */
	__u32 first;
	__u32 last;
	__u32 unit_us; /* unit of the stamps; 0: not known */
	__u32 misfits;
};

/* A least value, and the time at which it was measured, ns. */
struct least {
	__s64 value;
	__u64 at;
};

/* Weighted sums for the drift between the clocks. Weights have WEIGHT_DIGITS binary digits after
 * the point. */
struct skew {
	__u64 at; /* time of the last sample, ns; 0: no sample yet */
	__u64 weight;
	__u64 mean_time;   /* weighted mean of the times, us */
	__s64 mean_offset; /* weighted mean of the clock offsets, ns */
	__u64 time_time;   /* weighted sum of squares of the times, ms^2 */
	__s64 time_offset; /* weighted sum of products of times and offsets, ms us */
	__s64 ppb;         /* rate by which the peer's clock gains on ours */
};

/* State of one connection. */
struct solo {
	__u64 interval;  /* I, ns */
	__u64 floor;     /* least interval, ns */
	__u64 reuse;     /* n t_d, ns */
	__u64 queueing;  /* d, ns */
	__u64 samples;   /* number of samples so far */
	__u64 rtt[2];    /* least RTT of this horizon and of the previous one, ns */
	__u64 least_rtt; /* least RTT ever measured on this path, ns */
	struct least base[2]; /* least forward delays of this horizon and of the previous one */
	struct skew skew;
	__u64 turned_at; /* time at which the horizon began */
	__s64 mean;      /* mean forward delay, ns */
	__u64 mean_at;   /* time of the last update of the mean; 0: there is no mean */
	__s64 offset[2]; /* least and greatest clock offset that the last sample allows, ns */
	__u64 penalty;   /* relative growth of the interval caused by losses */
	__u64 lost_at;   /* time of the last loss that counted; 0: none */
	__u64 lossless;  /* time since the last loss, ns */
	__u64 pairs;     /* recent share of the ACKs that cover two segments or more */
	__u64 rate_bps;  /* rate of the path for which this state holds */
	struct peer_clock clock;
	__u32 hops;
	__u32 payload;
	__u32 train;   /* W */
	__u32 sampled; /* 1: the control law has taken its first sample */
};

/* Returns the air time of an exchange over one hop for a packet of `bytes`, ns. */
static __always_inline __u64 exchange(const struct path *path, __u64 bytes)
{
	return EXCHANGE + 8 * SECOND * (bytes + FRAME_BYTES) / path->rate_bps;
}

static __always_inline __u64 reuse_hops(__u64 hops)
{
	return hops < REUSE_HOPS ? hops : REUSE_HOPS;
}

/* Forgets least values and means. Those of another path have no meaning. */
static __always_inline void solo_forget(struct solo *solo)
{
	solo->rtt[0] = solo->rtt[1] = solo->least_rtt = NEVER;
	solo->base[0].value = solo->base[1].value = NEVER;
	solo->mean_at = 0;
}

/* Takes over the path, which is known now or has changed. */
static __always_inline void solo_path(struct solo *solo, const struct path *path, __u32 payload)
{
	__u64 before = solo->reuse;
	__u64 ratio;

	if (solo->hops == path->hops && solo->rate_bps == path->rate_bps && solo->payload == payload)
		return;
	solo_forget(solo);
	solo->hops = path->hops;
	solo->rate_bps = path->rate_bps;
	solo->payload = payload;
	solo->reuse = reuse_hops(path->hops) * exchange(path, payload + HEADERS);
	if (solo->sampled && before) {
		ratio = (solo->reuse << 20) / before;
		solo->interval = solo->interval * ratio >> 20;
		solo->floor = solo->floor * ratio >> 20;
		return;
	}
	solo->interval = solo->reuse * START / 1000;
	solo->floor = solo->interval;
}

/* Initial state, in which nothing is known. */
static __always_inline void solo_begin(struct solo *solo, const struct path *path, __u32 payload)
{
	__builtin_memset(solo, 0, sizeof(*solo));
	solo->offset[0] = -(__s64)NEVER;
	solo->offset[1] = NEVER;
	solo->lossless = NEVER;
	solo->pairs = ONE;
	solo->train = FIRST_TRAIN;
	solo_path(solo, path, payload);
}

/* True if all senders of data on the path hear each other, as far as the sender can tell from hops
 * and losses. */
static __always_inline bool solo_is_near(const struct solo *solo)
{
	return solo->hops <= NEAR_HOPS && solo->lossless >= LOSSLESS;
}

/* Returns the time between the two segments of a pair, ns. */
static __always_inline __u64 solo_gap(const struct solo *solo)
{
	__u64 longest = solo->reuse * LONGEST_GAP / 1000;

	return solo->floor < longest ? solo->floor : longest;
}

/* Returns the length of the next train. `after`: the previous train was sent whole, so that the
 * next may be longer. */
static __always_inline __u32 solo_next_train(struct solo *solo, bool after)
{
	__u64 longest = solo_is_near(solo) ? NEAR_TRAIN : TRAIN;
	__u64 most = SPAN / (solo->interval ? solo->interval : 1);
	__u64 train = solo->train;

	if (most > longest)
		most = longest;
	if (after)
		train *= 2;
	if (train > most)
		train = most;
	if (train < 1)
		train = 1;
	solo->train = (train + 1) & ~1ULL;
	return solo->train;
}

/* Handles a loss. At most one loss per half second counts. */
static __always_inline void solo_lost(struct solo *solo, __u64 now)
{
	solo->lossless = 0;
	if (solo->lost_at && now - solo->lost_at <= LOSS_APART)
		return;
	solo->lost_at = now;
	solo->penalty += LOSS;
}

/* Handles a timeout. Trains grow again from the length of a first train. */
static __always_inline void solo_timeout(struct solo *solo, __u64 now)
{
	if (solo->train > FIRST_TRAIN)
		solo->train = FIRST_TRAIN;
	solo_lost(solo, now);
}

/* Takes a time stamp. Returns 1 if the peer's clock is known, so that the stamp stands for a time,
 * 0 if it is not known yet, and -1 if it never will be. */
static __always_inline int read_clock(struct peer_clock *clock, __u64 now, __u32 stamp)
{
	__u64 elapsed, ticks, unit = 0;

	if (clock->misfits >= CLOCK_ATTEMPTS)
		return -1;
	if (!clock->first_at) {
		clock->first_at = now;
		clock->first = stamp;
		return 0;
	}
	if (clock->unit_us) {
		/* Stamps wrap around. Consecutive ACKs have stamps that are close together. */
		clock->reading += (__s64)(__s32)(stamp - clock->last) * (clock->unit_us * (__s64)US);
		clock->last = stamp;
		return 1;
	}
	elapsed = now - clock->first_at;
	if (elapsed < CLOCK_SPAN)
		return 0;
	ticks = (__u32)(stamp - clock->first);
	if (!ticks)
		ticks = 1;
	/* Accepts units within 35 % of 1 us, 1 ms or 4 ms. A clock with steps of 10 ms, or one that stands
	 * still, is of no use. */
#define FITS(us) (elapsed * 100 > ticks * ((us) * US * 65) && elapsed * 100 < ticks * ((us) * US * 135))
	if (FITS(1))
		unit = 1;
	else if (FITS(1000))
		unit = 1000;
	else if (FITS(4000))
		unit = 4000;
	if (!unit) {
		clock->misfits++;
		clock->first_at = now;
		clock->first = stamp;
		return 0;
	}
	clock->unit_us = unit;
	clock->last = stamp;
	clock->reading = 0;
	return 1;
}

/* Returns value part / whole, where value may be negative. */
static __always_inline __s64 part_of(__s64 value, __u64 part, __u64 whole)
{
	return value < 0 ? -(__s64)((__u64)-value * part / whole) : (__s64)((__u64)value * part / whole);
}

/* Returns value part / 2^20, for values with which the product would overflow. */
static __always_inline __u64 share_of(__u64 value, __u64 part)
{
	return (value >> 20) * part + ((value & ((1 << 20) - 1)) * part >> 20);
}

static __always_inline __s64 within(__s64 value, __s64 limit)
{
	if (value > limit)
		return limit;
	return value < -limit ? -limit : value;
}

/* Adds a sample to the sums: at time `now` the offset of the clocks is `offset`, with the weight
 * `weight` of 32 binary digits. */
static __always_inline void add_skew(struct skew *skew, __u64 now, __s64 offset, __u64 weight)
{
	__u64 ms = (now - skew->at) / MS, now_us = now / US;
	__u64 fade, share, late;
	__s64 above;

	if (!skew->at) {
		skew->at = now;
		skew->weight = weight >> (32 - WEIGHT_DIGITS);
		skew->mean_time = now_us;
		skew->mean_offset = offset;
		return;
	}
	skew->at = now;
	if (ms > 10 * MEMORY_MS)
		ms = 10 * MEMORY_MS;
	fade = halved(ms * (LOG2_E_31 / 2) / MEMORY_MS << 2) >> 12;
	skew->weight = (skew->weight * fade >> 20) + (weight >> (32 - WEIGHT_DIGITS));
	if (!skew->weight)
		return;
	share = (weight >> 12 << WEIGHT_DIGITS) / skew->weight;
	late = now_us - skew->mean_time;
	skew->mean_time += late * share >> 20;
	skew->mean_offset += part_of(within(offset - skew->mean_offset, SECOND), share, 1 << 20);
	late = late / 1000 * (weight >> (32 - WEIGHT_DIGITS));
	skew->time_time = share_of(skew->time_time, fade) + late * ((now_us - skew->mean_time) / 1000);
	above = within(part_of(offset - skew->mean_offset, 1, US), SECOND / US);
	if (skew->time_offset < 0)
		skew->time_offset = -(__s64)share_of(-skew->time_offset, fade);
	else
		skew->time_offset = share_of(skew->time_offset, fade);
	skew->time_offset += (__s64)late * above;
	/* An offset in us divided by a time in ms is in thousandths. */
	skew->ppb = within(part_of(skew->time_offset, 1, (skew->time_time + PRIOR) / 1000000), SKEW_LIMIT);
}

/* Returns a least value as it would be now if values grew by the skew. */
static __always_inline __s64 grown(const struct least *least, __u64 now, __s64 ppb)
{
	return least->value + part_of(ppb, (now - least->at) / US, 1000000);
}

/* Returns the least forward delay of the last one to two horizons, corrected by the skew until now.
 */
static __always_inline __s64 least_forward(const struct solo *solo, __u64 now)
{
	__s64 newer = grown(&solo->base[0], now, solo->skew.ppb);
	__s64 older = grown(&solo->base[1], now, solo->skew.ppb);

	return newer < older ? newer : older;
}

/* Applies the control law for a sample `dt_us` after the last one, 0 for the first. `tau` and the
 * queueing delay d have their new values. */
static __always_inline void solo_law(struct solo *solo, __u64 dt_us, __u64 tau)
{
	__u64 floor = tau * (solo->hops <= NEAR_HOPS ? NEAR_FLOOR : FAR_FLOOR) / 1000;
	__u64 near = solo_is_near(solo), scale, borne, want, log, weight, most;

	solo->floor = floor;
	if (!dt_us || !solo->sampled) {
		most = floor + floor / 2;
		if (!solo->sampled && solo->interval > most)
			solo->interval = most;
		if (solo->interval < floor)
			solo->interval = floor;
		solo->sampled = 1;
		return;
	}
	if (solo->lossless < NEVER / 2)
		solo->lossless += dt_us * US;
	near = solo_is_near(solo);
	/* e^(-0.3 dt): 0.3 / ln 2 per second, with 32 binary digits, in thousandths per microsecond. */
	weight = halved(dt_us * 1858898 / 1000);
	solo->penalty = solo->penalty * weight >> 32;
	weight = (ONE - weight) >> 8;
	scale = 1000;
	if (solo->hops > REUSE_HOPS)
		scale += LENGTH * (solo->hops - REUSE_HOPS) / REUSE_HOPS;
	borne = tau * ((near ? NEAR_DELAY : DELAY) * scale) / 1000000;
	want = logarithm(floor) + logarithm(ONE + solo->penalty) - (32ULL << 32);
	if (borne && solo->queueing > borne)
		want += (logarithm(solo->queueing) - logarithm(borne)) * 2 / 3;
	log = logarithm(solo->interval);
	if (want >= log)
		log += weight * (want - log) >> 24;
	else
		log -= weight * (log - want) >> 24;
	solo->interval = power(log);
	if (solo->interval > SLOWEST * tau)
		solo->interval = SLOWEST * tau;
	if (solo->interval < floor)
		solo->interval = floor;
	if (solo->interval > MINUTE)
		solo->interval = MINUTE;
}

/* Takes the sample of an ACK that counts: its round-trip time and its forward delay. */
static __always_inline void solo_sample(struct solo *solo, const struct path *path, __u64 now, __u64 rtt, __s64 forward)
{
	__u64 dt_us = 0, span_us, weight, share, tau, noise;
	__s64 base, above;

	if (now - solo->turned_at > HORIZON) {
		solo->turned_at = now;
		solo->rtt[1] = solo->rtt[0];
		solo->base[1] = solo->base[0];
		solo->rtt[0] = solo->base[0].value = NEVER;
		solo->base[0].at = now;
	}
	/* The forward delay is at least 0 and at most the round-trip time. If no offset of the clocks
	 * satisfies this, a clock was set. */
	if (forward - (__s64)rtt > solo->offset[1] + JUMP || forward < solo->offset[0] - JUMP) {
		__builtin_memset(&solo->skew, 0, sizeof(solo->skew));
		solo->base[0].value = solo->base[1].value = NEVER;
		solo->mean_at = 0;
	}
	solo->offset[0] = forward - (__s64)rtt;
	solo->offset[1] = forward;
	if (rtt < solo->rtt[0])
		solo->rtt[0] = rtt;
	if (rtt < solo->least_rtt)
		solo->least_rtt = rtt;
	/* e^-(above / BELIEVED), where `above` is the RTT above the least one, in microseconds. */
	weight = (rtt - solo->least_rtt) / US;
	weight = halved(weight * (LOG2_E_31 / 2) / BELIEVED << 2);
	add_skew(&solo->skew, now, forward - (__s64)(rtt / 2), weight);
	if (forward <= grown(&solo->base[0], now, solo->skew.ppb)) {
		solo->base[0].value = forward;
		solo->base[0].at = now;
	}
	if (solo->mean_at) {
		dt_us = (now - solo->mean_at) / US;
		if (dt_us < 100)
			dt_us = 100;
		if (dt_us > MINUTE / US)
			dt_us = MINUTE / US;
		span_us = SMOOTHING / US;
		if (2 * solo->interval / US > span_us)
			span_us = 2 * solo->interval / US;
		weight = (ONE - halved(dt_us * (LOG2_E_31 / 2) / span_us << 2)) >> 8;
		above = forward - solo->mean;
		if (above >= 0)
			solo->mean += (__u64)above * weight >> 24;
		else
			solo->mean -= (__u64)-above * weight >> 24;
	} else {
		solo->mean = forward;
	}
	solo->mean_at = now;
	solo->samples++;

	base = least_forward(solo, now);
	noise = HOP_NOISE * solo->hops + solo->clock.unit_us * US / 2;
	above = solo->mean - base;
	solo->queueing = above > (__s64)noise ? above - noise : 0;
	rtt = solo->rtt[0] < solo->rtt[1] ? solo->rtt[0] : solo->rtt[1];
	share = exchange(path, solo->payload + HEADERS);
	share = (share << 20) / (share + exchange(path, ACK_PACKET));
	tau = (rtt * share >> 20) * reuse_hops(solo->hops) / (solo->hops ? solo->hops : 1);
	if (tau)
		solo_law(solo, dt_us, tau);
}

/* Counts an ACK that covers `segments` new segments. */
static __always_inline void solo_count(struct solo *solo, __u32 segments)
{
	solo->pairs -= solo->pairs / 10;
	if (segments >= 2)
		solo->pairs += ONE / 10;
}

/*
 * Takes an ACK that covers `segments` new segments and carries the time stamp `stamp`. The newest
 * of them was sent `rtt_us` before. A negative `rtt_us` means that one of them was sent twice.
 */
static __always_inline void solo_ack(struct solo *solo, const struct path *path, __u64 now, __s32 rtt_us,
				     __u32 segments, __u32 stamp)
{
	__s64 forward, base;
	__u64 rtt;
	int told;

	solo_count(solo, segments);
	if (rtt_us < 0)
		return;
	rtt = rtt_us < LONGEST_RTT_US ? rtt_us : LONGEST_RTT_US;
	rtt *= US;
	told = read_clock(&solo->clock, now, stamp);
	if (!told)
		return;
	forward = told > 0 ? solo->clock.reading - (__s64)(now - rtt) : (__s64)rtt;
	base = least_forward(solo, now);
	/* An ACK of a single segment may have waited for the receiver's delayed-ACK timer. */
	if (segments >= 2 || solo->pairs < FEW_PAIRS ||
	    (solo->mean_at && (forward < solo->mean || forward - base < NO_TIMER)))
		solo_sample(solo, path, now, rtt, forward);
}

#endif
