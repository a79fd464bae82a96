/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Common part of both congestion controls: the maps that the loader fills, the choice of the
 * connections that are paced, and the report about a connection.
 *
 * A path without radio has no hops that share a channel. Pacing by the number of its hops would
 * limit a wired path to a few Mbit/s. So a connection is paced in two cases only: its path has
 * `always` set, or its packets leave by a device that is an 802.11 device or that the loader has
 * named. All others have the kernel's NewReno without pacing. The path is looked up with every ACK,
 * because routes change.
 */
#ifndef MESHPACE_SHARED_H
#define MESHPACE_SHARED_H

#include "vmlinux.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "path.h"

/* The kernel accepts a congestion control only with a licence that is compatible with the GPL. */
char _license[] SEC("license") = "Dual MIT/GPL";

#define WHOLE_ADDRESS 128
#define MAPPED_IPV4 __builtin_bswap32(0xffff)
#define UNLIMITED 0xfffffffeu /* bytes/s, 1 less than the value for no ceiling */
#define NO_CEILING 0xffffffffu
#define SECOND_NS 1000000000ULL
#define LEAST_THRESHOLD 2 /* segments, as in the kernel's tcp_reno_ssthresh() */
#define NEVER_PACED 10 /* data segments, as in the kernel's tcp_update_skb_after_send() */

/*
 * Value that a program returns to the kernel, its answer. The kernel does not promise to run the
 * program: the trampoline before it may skip it, and then the answer is whatever was on the stack.
 * So a connection must survive the loss of any answer.
 *
 * The answer of min_tso_segs, the least number of segments to pass to a device, is the dangerous
 * one. If it is 0, tcp_write_xmit() cuts an empty segment off the data. If nothing else is in
 * flight, the timer of window probes sends that segment. No ACK covers it, so TCP repeats it for
 * ever and sends nothing else. TCP-AP therefore has no min_tso_segs; the loader sets
 * net.ipv4.tcp_min_tso_segs instead. Quiet trains need the call and recover (send_behind_empty() in
 * meshpace_solo.bpf.c).
 *
 * For tests: with LOST_ANSWERS every answer is 0, with SOME_LOST_ANSWERS one in 16.
 */
#if defined(LOST_ANSWERS)
#define ANSWER(value) ((void)(value), 0)
#elif defined(SOME_LOST_ANSWERS)
#define ANSWER(value) (bpf_get_prandom_u32() % 16 ? (value) : 0)
#else
#define ANSWER(value) (value)
#endif

/* Destination: an IPv6 prefix, or an IPv4 prefix mapped into ::ffff:0:0/96. */
struct destination {
	__u32 bits;
	__be32 address[4];
};

/* Device: the number of a network namespace, and the name of the device in it. */
struct device {
	__u32 namespace;
	char name[16];
};

/* Path of a connection, and what follows from it. */
struct way {
	struct path path; /* as last looked up */
	__u32 payload;    /* bytes of a full segment */
	__u32 paced;      /* 1: this connection is paced */
};

/* Report of the iterator about a connection. crates/kernel/src/connection.rs reads it. */
struct report {
	__be32 local[4];
	__be32 remote[4];
	__u64 interval_ns;
	__u64 delay_ns;
	__u64 samples;
	__u64 rate_bps;
	__u64 gap_ns;
	__u32 namespace;
	__u32 cov;
	__u32 hops;
	__u32 payload;
	__u32 rate;
	__u32 train;
	__u32 paced;
	__u16 local_port;
	__be16 remote_port;
};

_Static_assert(sizeof(struct report) == 104, "the loader reads 104 bytes a connection");

struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(max_entries, 4096);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct destination);
	__type(value, struct path);
} paths SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct settings);
} settings SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 256);
	__type(key, struct device);
	__type(value, __u32);
} devices SEC(".maps");

extern void tcp_reno_cong_avoid(struct sock *sk, __u32 ack, __u32 acked) __ksym;
extern __u32 tcp_reno_ssthresh(struct sock *sk) __ksym;
extern __u32 tcp_reno_undo_cwnd(struct sock *sk) __ksym;

static __always_inline void set_ceiling(struct sock *sk, __u32 bytes_per_second)
{
	bpf_setsockopt(sk, SOL_SOCKET, SO_MAX_PACING_RATE, &bytes_per_second, sizeof(bytes_per_second));
}

static __always_inline void copy_address(__be32 to[4], const struct in6_addr *from)
{
	to[0] = from->in6_u.u6_addr32[0];
	to[1] = from->in6_u.u6_addr32[1];
	to[2] = from->in6_u.u6_addr32[2];
	to[3] = from->in6_u.u6_addr32[3];
}

static __always_inline void remote_address(__be32 to[4], const struct sock *sk)
{
	if (sk->__sk_common.skc_family == AF_INET6) {
		copy_address(to, &sk->__sk_common.skc_v6_daddr);
	} else {
		to[0] = 0;
		to[1] = 0;
		to[2] = MAPPED_IPV4;
		to[3] = sk->__sk_common.skc_daddr;
	}
}

static __always_inline void local_address(__be32 to[4], const struct sock *sk)
{
	if (sk->__sk_common.skc_family == AF_INET6) {
		copy_address(to, &sk->__sk_common.skc_v6_rcv_saddr);
	} else {
		to[0] = 0;
		to[1] = 0;
		to[2] = MAPPED_IPV4;
		to[3] = sk->__sk_common.skc_rcv_saddr;
	}
}

/* Returns 1 if packets leave by an 802.11 device or by one that the loader has named, 0 if not, and
 * -1 while there is no route. */
static __always_inline int leaves_by_radio(struct sock *sk)
{
	struct device device = {};
	struct net_device *leaving;
	struct dst_entry *route = sk->sk_dst_cache;

	if (!route)
		return -1;
	leaving = route->dev;
	if (bpf_core_field_exists(leaving->ieee80211_ptr) && BPF_CORE_READ(leaving, ieee80211_ptr))
		return 1;
	device.namespace = sk->__sk_common.skc_net.net->ns.inum;
	bpf_probe_read_kernel(device.name, sizeof(device.name), leaving->name);
	return bpf_map_lookup_elem(&devices, &device) != 0;
}

/* Looks the path of a connection up again. Returns false if the map has no path for it. */
static __always_inline bool look_up(struct sock *sk, struct way *way)
{
	struct destination destination = { .bits = WHOLE_ADDRESS };
	struct path *path;
	int radio;

	remote_address(destination.address, sk);
	path = bpf_map_lookup_elem(&paths, &destination);
	if (!path)
		return false;
	/* The path is copied because the entry may change while it is in use. */
	way->path = *path;
	way->payload = ((struct tcp_sock *)sk)->mss_cache;
	radio = way->path.always ? 1 : leaves_by_radio(sk);
	if (radio >= 0)
		way->paced = radio;
	return true;
}

/* Switches the kernel's own pacing of a connection on, if nothing paces it yet, or off. If a queue
 * discipline (fq) paces the connection, it continues to do so. */
static __always_inline void pace(struct sock *sk, bool on)
{
	if (on && sk->sk_pacing_status == SK_PACING_NONE)
		sk->sk_pacing_status = SK_PACING_NEEDED;
	else if (!on && sk->sk_pacing_status == SK_PACING_NEEDED)
		sk->sk_pacing_status = SK_PACING_NONE;
}

/* Applies the least values of NewReno. The kernel divides by the window, and takes a window from a
 * lost answer without a check. */
static __always_inline void mend_window(struct tcp_sock *tp)
{
	if (tp->snd_ssthresh < LEAST_THRESHOLD)
		tp->snd_ssthresh = LEAST_THRESHOLD;
	if (tp->snd_cwnd < 1)
		tp->snd_cwnd = 1;
}

/* Fills the part of a report that is the same for both controls. */
static __always_inline void begin_report(struct report *report, const struct sock *sk, const struct way *way)
{
	local_address(report->local, sk);
	remote_address(report->remote, sk);
	report->rate_bps = way->path.rate_bps;
	report->namespace = sk->__sk_common.skc_net.net->ns.inum;
	report->hops = way->path.hops;
	report->payload = way->payload;
	report->paced = way->paced;
	report->local_port = sk->__sk_common.skc_num;
	report->remote_port = sk->__sk_common.skc_dport;
}

#endif
