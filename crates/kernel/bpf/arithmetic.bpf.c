/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * The arithmetic of the two congestion controls alone, so that a test can call it. A program of
 * type `struct_ops` cannot be started from user space; a program of type `syscall` can.
 */
#include "vmlinux.h"

#include <bpf/bpf_helpers.h>

#include "pacing.h"
#include "solo.h"

char _license[] SEC("license") = "Dual MIT/GPL";

/* One RTT sample and its results. crates/kernel/tests/arithmetic.rs writes and reads this
 * structure. */
struct request {
	struct path path;
	struct settings settings;
	__u32 payload;
	__u32 rtt_us;
	__u32 first; /* 1: resets the estimator before this sample */
	__u64 interval_ns;
	__u64 cov;
};

/* Event at a sender of quiet trains. The structure below carries the event and the state after it.
 */
enum event { BEGINS, IS_ACKED, NEXT_TRAIN, LONGER_TRAIN, LOSES, TIMES_OUT };

struct solo_request {
	struct path path;
	__u64 now;
	__u32 payload;
	__s32 rtt_us;
	__u32 segments;
	__u32 stamp;
	__u32 event;
	__u32 train;
	__u64 interval;
	__u64 gap;
	__u64 queueing;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct solo);
} sender SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct estimator);
} state SEC(".maps");

SEC("syscall")
int take(struct request *request)
{
	struct estimator *estimator;
	struct settings settings = request->settings;
	struct path path = request->path;
	__u32 zero = 0;

	estimator = bpf_map_lookup_elem(&state, &zero);
	if (!estimator)
		return 1;
	if (request->first)
		__builtin_memset(estimator, 0, sizeof(*estimator));
	take_sample(estimator, &path, &settings, request->payload, request->rtt_us);
	request->interval_ns = estimator->interval_ns;
	request->cov = estimator->cov;
	return 0;
}

SEC("syscall")
int happens(struct solo_request *request)
{
	struct path path = request->path;
	struct solo *solo;
	__u32 zero = 0;

	solo = bpf_map_lookup_elem(&sender, &zero);
	if (!solo)
		return 1;
	switch (request->event) {
	case BEGINS:
		solo_begin(solo, &path, request->payload);
		break;
	case IS_ACKED:
		solo_path(solo, &path, request->payload);
		solo_ack(solo, &path, request->now, request->rtt_us, request->segments, request->stamp);
		break;
	case NEXT_TRAIN:
		solo_next_train(solo, false);
		break;
	case LONGER_TRAIN:
		solo_next_train(solo, true);
		break;
	case LOSES:
		solo_lost(solo, request->now);
		break;
	default:
		solo_timeout(solo, request->now);
	}
	request->train = solo->train;
	request->interval = solo->interval;
	request->gap = solo_gap(solo);
	request->queueing = solo->queueing;
	return 0;
}
