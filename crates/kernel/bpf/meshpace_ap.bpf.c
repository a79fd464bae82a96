/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * TCP with adaptive pacing (AP05, AP10) as a congestion control of the Linux kernel. The window is
 * the kernel's own NewReno: slow start, fast retransmit, undo. The pacing rate has a ceiling,
 * SO_MAX_PACING_RATE, which every RTT sample sets anew.
 *
 * Departures from the papers, all of them caused by the kernel:
 *
 * - The first ten data segments of a connection are never paced, so the window does not grow until
 *   they have been sent. A burst of ten causes RTTs that lengthen the interval for the next 50
 *   samples. If an RTO occurs before ten segments have been sent, the window is one segment and
 *   stays so until then.
 * - The kernel paces bytes, so a short segment is followed by a proportionally shorter gap.
 * - Retransmissions are paced like new data.
 * - Where cwnd/srtt is below the ceiling, TCP's own pacing spaces segments further apart. Its rate
 *   is never below 1.2 cwnd/srtt.
 */
#include "shared.h"

#include "pacing.h"

/* State of one connection. */
struct connection {
	struct estimator estimator;
	struct way way;
	__u32 rate; /* ceiling of the pacing rate, bytes/s */
};

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct connection);
} connections SEC(".maps");

SEC("struct_ops")
void BPF_PROG(meshpace_init, struct sock *sk)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct connection *connection;
	struct settings *chosen;
	__u32 zero = 0;

	connection = bpf_sk_storage_get(&connections, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
	if (!connection)
		return;
	__builtin_memset(connection, 0, sizeof(*connection));
	if (!look_up(sk, &connection->way) || !connection->way.paced)
		return;
	/* Switches the kernel's pacing on. The first RTT sample sets the ceiling. */
	set_ceiling(sk, UNLIMITED);
	chosen = bpf_map_lookup_elem(&settings, &zero);
	/* A program may choose this control before it connects or, as iperf3, after the first bytes. */
	if (chosen && chosen->initial_window && tp->data_segs_out < NEVER_PACED &&
	    tp->snd_cwnd > chosen->initial_window)
		tp->snd_cwnd = chosen->initial_window;
}

SEC("struct_ops")
void BPF_PROG(meshpace_acked, struct sock *sk, const struct ack_sample *sample)
{
	struct connection *connection;
	struct settings *chosen;
	__u64 interval, rate;
	__s32 rtt_us = sample->rtt_us;
	__u32 zero = 0, paced;

	/* A negative value means that this ACK yields no RTT, for example because it covers a
	 * retransmission. */
	if (rtt_us < 0)
		return;
	connection = bpf_sk_storage_get(&connections, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
	chosen = bpf_map_lookup_elem(&settings, &zero);
	if (!connection || !chosen)
		return;
	paced = connection->way.paced;
	if (!look_up(sk, &connection->way))
		return;
	if (!connection->way.paced) {
		if (paced) {
			set_ceiling(sk, NO_CEILING);
			pace(sk, false);
			connection->rate = 0;
		}
		return;
	}
	take_sample(&connection->estimator, &connection->way.path, chosen, connection->way.payload, rtt_us);

	interval = connection->estimator.interval_ns;
	rate = interval ? (connection->way.payload * SECOND_NS + interval / 2) / interval : UNLIMITED;
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
	struct connection *connection;
	struct settings *chosen;
	__u32 zero = 0;

	mend_window(tp);
	connection = bpf_sk_storage_get(&connections, sk, 0, 0);
	chosen = bpf_map_lookup_elem(&settings, &zero);
	if (connection && connection->way.paced && chosen && chosen->initial_window && tp->data_segs_out < NEVER_PACED)
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

/* Iterator program. A read of the pinned iterator returns one `struct report` for each connection,
 * of all network namespaces. */
SEC("iter/bpf_sk_storage_map")
int meshpace_report(struct bpf_iter__bpf_sk_storage_map *context)
{
	struct seq_file *seq = context->meta->seq;
	struct connection *connection = context->value;
	struct sock *sk = context->sk;
	struct report report = {};

	if (!sk || !connection)
		return 0;
	begin_report(&report, sk, &connection->way);
	report.interval_ns = connection->estimator.interval_ns;
	report.delay_ns = connection->estimator.delay_ns;
	report.samples = connection->estimator.samples;
	report.cov = connection->estimator.cov;
	report.rate = connection->rate;
	bpf_seq_write(seq, &report, sizeof(report));
	return 0;
}
