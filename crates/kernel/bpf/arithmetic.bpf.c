/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * The arithmetic of the congestion control alone, for a test to call: programs of the kind `struct_ops` cannot be run by
 * hand, one of the kind `syscall` can.
 */
#include "vmlinux.h"

#include <bpf/bpf_helpers.h>

#include "pacing.h"

char _license[] SEC("license") = "Dual MIT/GPL";

/* One sample, and what came of it. crates/kernel/tests/arithmetic.rs writes and reads it. */
struct request {
	struct path path;
	struct settings settings;
	__u32 payload;
	__u32 rtt_us;
	__u32 first; /* 1: forget everything before */
	__u64 interval_ns;
	__u64 cov;
};

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
