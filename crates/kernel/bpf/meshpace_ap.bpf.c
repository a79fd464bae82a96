/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * TCP with adaptive pacing (AP05, AP10) as a congestion control of the Linux kernel. The window is the kernel's own NewReno:
 * slow start, fast retransmit, undo. The pacing is a ceiling, SO_MAX_PACING_RATE, set anew with every RTT sample.
 *
 * Departures from the papers, all the kernel's: its first ten data segments are never paced, so the window does not grow
 * until they are out (a burst of ten makes RTTs that stretch the interval for the next 50 samples; an RTO before that leaves a
 * window of one, which stays until ten are out); it paces bytes, so a short segment is followed by a proportionally shorter
 * gap; retransmissions are paced like new data; where cwnd/srtt is below the ceiling, TCP's own pacing spaces segments
 * further, never below 1.2 cwnd/srtt.
 */
#include "vmlinux.h"

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "pacing.h"

/* The kernel refuses a congestion control without a licence compatible with the GPL. */
char _license[] SEC("license") = "Dual MIT/GPL";

#define WHOLE_ADDRESS 128
#define MAPPED_IPV4 __builtin_bswap32(0xffff)
#define UNLIMITED 0xfffffffeu /* bytes/s; one more would switch pacing off */
#define SECOND_NS 1000000000ULL
#define LEAST_THRESHOLD 2 /* segments, by the kernel's tcp_reno_ssthresh() */
#define NEVER_PACED 10 /* data segments of a connection, by the kernel's tcp_update_skb_after_send() */

/*
 * What a program answers the kernel. The kernel does not promise to run the program: the trampoline before it may pass it
 * over, and then the answer is whatever was on the stack. So nothing here may depend on an answer, and there is no
 * min_tso_segs: with 0 for it tcp_write_xmit() makes an empty segment, which the timer of window probes sends, which no ACK
 * covers, and which is repeated for ever. The loader sets net.ipv4.tcp_min_tso_segs. With LOST_ANSWERS, for a test, every
 * answer is lost and 0 is in its place.
 */
#ifdef LOST_ANSWERS
#define ANSWER(value) ((void)(value), 0)
#else
#define ANSWER(value) (value)
#endif

/* A destination: an IPv6 prefix, or an IPv4 one mapped into ::ffff:0:0/96. */
struct destination {
	__u32 bits;
	__be32 address[4];
};

/* One connection's state. */
struct connection {
	struct estimator estimator;
	struct path path; /* as last looked up */
	__u32 payload;    /* bytes of a full segment */
	__u32 rate;       /* ceiling, bytes/s */
};

/* What the iterator tells of a connection. crates/kernel/src/connection.rs reads it. */
struct report {
	__be32 local[4];
	__be32 remote[4];
	__u64 interval_ns;
	__u64 delay_ns;
	__u64 samples;
	__u64 rate_bps;
	__u32 namespace;
	__u32 cov;
	__u32 hops;
	__u32 payload;
	__u32 rate;
	__u16 local_port;
	__be16 remote_port;
};

_Static_assert(sizeof(struct report) == 88, "the loader reads 88 bytes a connection");

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
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct connection);
} connections SEC(".maps");

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

SEC("struct_ops")
void BPF_PROG(meshpace_init, struct sock *sk)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct connection *connection;
	struct settings *chosen;
	__u32 zero = 0;

	connection = bpf_sk_storage_get(&connections, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
	if (connection)
		__builtin_memset(connection, 0, sizeof(*connection));
	/* Switches the kernel's pacing on; the ceiling comes with the first sample. */
	set_ceiling(sk, UNLIMITED);
	chosen = bpf_map_lookup_elem(&settings, &zero);
	/* Programs choose it before they connect or, as iperf3, after the first bytes. */
	if (chosen && chosen->initial_window && tp->data_segs_out < NEVER_PACED &&
	    tp->snd_cwnd > chosen->initial_window)
		tp->snd_cwnd = chosen->initial_window;
}

SEC("struct_ops")
void BPF_PROG(meshpace_acked, struct sock *sk, const struct ack_sample *sample)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct destination destination = { .bits = WHOLE_ADDRESS };
	struct connection *connection;
	struct settings *chosen;
	struct path *path;
	__u64 interval, rate;
	__s32 rtt_us = sample->rtt_us;
	__u32 zero = 0;

	/* Less than 0: this ACK tells no RTT, as when it covers a retransmission. */
	if (rtt_us < 0)
		return;
	connection = bpf_sk_storage_get(&connections, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
	chosen = bpf_map_lookup_elem(&settings, &zero);
	remote_address(destination.address, sk);
	path = bpf_map_lookup_elem(&paths, &destination);
	if (!connection || !chosen || !path)
		return;
	/* A copy: the entry may be changed while it is in use. */
	connection->path = *path;
	connection->payload = tp->mss_cache;
	take_sample(&connection->estimator, &connection->path, chosen, connection->payload, rtt_us);

	interval = connection->estimator.interval_ns;
	rate = interval ? (connection->payload * SECOND_NS + interval / 2) / interval : UNLIMITED;
	if (rate < 1)
		rate = 1;
	if (rate > UNLIMITED)
		rate = UNLIMITED;
	connection->rate = rate;
	set_ceiling(sk, rate);
}

SEC("struct_ops")
void BPF_PROG(meshpace_avoid, struct sock *sk, __u32 ack, __u32 acked)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct settings *chosen;
	__u32 zero = 0;

	/* What NewReno answers at least. The kernel divides by the window, which it takes from a lost answer without a look. */
	if (tp->snd_ssthresh < LEAST_THRESHOLD)
		tp->snd_ssthresh = LEAST_THRESHOLD;
	if (tp->snd_cwnd < 1)
		tp->snd_cwnd = 1;
	chosen = bpf_map_lookup_elem(&settings, &zero);
	if (chosen && chosen->initial_window && tp->data_segs_out < NEVER_PACED)
		return;
	tcp_reno_cong_avoid(sk, ack, acked);
}

SEC("struct_ops")
__u32 BPF_PROG(meshpace_ssthresh, struct sock *sk)
{
	return ANSWER(tcp_reno_ssthresh(sk));
}

SEC("struct_ops")
__u32 BPF_PROG(meshpace_undo, struct sock *sk)
{
	return ANSWER(tcp_reno_undo_cwnd(sk));
}

SEC(".struct_ops")
struct tcp_congestion_ops meshpace_ap = {
	.init = (void *)meshpace_init,
	.pkts_acked = (void *)meshpace_acked,
	.cong_avoid = (void *)meshpace_avoid,
	.ssthresh = (void *)meshpace_ssthresh,
	.undo_cwnd = (void *)meshpace_undo,
	.name = "meshpace_ap",
};

/* Reading the pinned iterator gives one `struct report` per connection, of all network namespaces. */
SEC("iter/bpf_sk_storage_map")
int meshpace_report(struct bpf_iter__bpf_sk_storage_map *context)
{
	struct seq_file *seq = context->meta->seq;
	struct connection *connection = context->value;
	struct sock *sk = context->sk;
	struct report report = {};

	if (!sk || !connection)
		return 0;
	local_address(report.local, sk);
	remote_address(report.remote, sk);
	report.interval_ns = connection->estimator.interval_ns;
	report.delay_ns = connection->estimator.delay_ns;
	report.samples = connection->estimator.samples;
	report.rate_bps = connection->path.rate_bps;
	report.namespace = sk->__sk_common.skc_net.net->ns.inum;
	report.cov = connection->estimator.cov;
	report.hops = connection->path.hops;
	report.payload = connection->payload;
	report.rate = connection->rate;
	report.local_port = sk->__sk_common.skc_num;
	report.remote_port = sk->__sk_common.skc_dport;
	bpf_seq_write(seq, &report, sizeof(report));
	return 0;
}
