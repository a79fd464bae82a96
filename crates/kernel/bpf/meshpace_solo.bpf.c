/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * `quiet-train-solo` as a congestion control of the Linux kernel. Segments leave in pairs. After W
 * segments, a train, nothing leaves until all of them are acknowledged (docs/quiet-trains.md, "The
 * sender alone"; crates/transport/src/train/solo.rs). The control law is in solo.h.
 *
 * The window causes the silence after a train. It is set to the segments in flight plus the
 * segments of the train that are still to be sent. It decreases as segments are acknowledged, so
 * nothing leaves after the last segment of a train. When nothing is in flight, it is W again.
 *
 * The kernel's pacing causes the spacing. After a segment the kernel waits for the time that its
 * bytes take at the pacing rate. It subtracts the time by which the segment left late, at most half
 * of the wait. Before every segment the kernel calls min_tso_segs. That program sets the rate so
 * that the wait has the length that the train needs. After the first segment of a pair the wait is
 * `gap`. After the second it is the rest of two intervals since the first segment, but at least
 * `gap`.
 *
 * Departures, all of them caused by the kernel:
 *
 * - The first ten data segments of a connection are never paced. Trains have two segments until
 *   these ten are sent, and four until the first sample.
 * - A short segment is followed by a proportionally shorter wait.
 * - In recovery, the kernel's proportional rate reduction decides when lost segments are sent
 *   again, down to two segments in flight.
 * - When no ACK arrives, the kernel's own timers probe in place of `patience`: the tail loss probe
 *   after two round trips, and the RTO. They send one segment, not a train.
 */
#include "shared.h"

#include "solo.h"

#define INFINITE 0x7fffffffu /* slow-start threshold where it has no effect */
#define KERNELS_LEAST 2      /* default of net.ipv4.tcp_min_tso_segs */
#define RECOVERING 2         /* segments in flight in recovery */
/* Number of segments at the start of a connection whose ACKs are not used as samples. Linux
 * acknowledges each of about the first 22 segments at once. */
#define QUICK 32
#define TIMER (40 * MS)      /* shortest delayed-ACK timer of a receiver: Linux's */

/* State of one connection. */
struct connection {
	struct solo solo;
	struct way way;
	__u64 rate;       /* pacing rate, bytes/s, which gives the wait after the next segment */
	__u64 leaves_at;  /* time at which the kernel's next attempt would send a segment, ns */
	__u64 pair_began; /* time at which the first segment of the last pair left */
	__u32 sent;       /* data segments sent when this program last looked */
	__u32 began;      /* data segments sent when this train began */
	__u32 paired;     /* data segments sent when the first pair began */
	__u32 train;      /* length of this train, segments */
	/* 1: the receiver has acknowledged an odd number of segments of this train, or of those since
	 * nothing was in flight. */
	__u32 odd;
	__u32 first;      /* 1: this train is one of those before the kernel starts to pace */
	__u32 in_timeout; /* 1: an RTO has occurred and no ACK has arrived since */
	__u32 behind_empty; /* 1: the next segment follows an empty one; no wait after it */
};

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct connection);
} connections SEC(".maps");

/*
 * Number of segments of this train that have not been sent. A receiver that acknowledges a single
 * segment, for example because of its PSH flag, counts the next two from there. The train is then
 * one segment longer. Otherwise its last segment would wait for the delayed-ACK timer of the
 * receiver.
 */
static __always_inline __u32 left(const struct connection *connection, const struct tcp_sock *tp)
{
	__u32 sent = tp->data_segs_out - connection->began;
	__u32 train = connection->train + (connection->train ? connection->odd : 0);

	return sent < train ? train - sent : 0;
}

/* True if the next segment is the second of a pair in the receiver's count. */
static __always_inline bool is_second(const struct connection *connection, __u32 sent)
{
	return (sent - connection->paired + connection->odd) & 1;
}

/* Sets the window so that exactly the rest of the train can be sent. */
static __always_inline void hold_window(const struct connection *connection, struct tcp_sock *tp)
{
	__u32 window = tp->packets_out - tp->sacked_out - tp->lost_out + tp->retrans_out + left(connection, tp);

	tp->snd_cwnd = window ? window : 1;
}

/* Allows the next train. `after`: the previous train was sent whole, so that the next may be
 * longer. */
static __always_inline void begin_train(struct connection *connection, struct tcp_sock *tp, bool after)
{
	struct settings *chosen;
	__u32 zero = 0;

	chosen = bpf_map_lookup_elem(&settings, &zero);
	connection->began = tp->data_segs_out;
	connection->paired = tp->data_segs_out;
	connection->odd = 0;
	if (chosen && chosen->initial_window && tp->data_segs_out < NEVER_PACED) {
		connection->train = chosen->initial_window;
		connection->first = 1;
	} else {
		/* Before the first sample nothing is known of the path, so trains keep the length of a first
		 * train. */
		connection->train = solo_next_train(&connection->solo, after && !connection->first && connection->solo.samples);
		connection->first = 0;
	}
}

/* Starts from the initial state, as if nothing had been sent. */
static __always_inline void begin(struct connection *connection, struct sock *sk)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;

	pace(sk, true);
	solo_begin(&connection->solo, &connection->way.path, connection->way.payload);
	connection->in_timeout = 0;
	connection->sent = tp->data_segs_out;
	begin_train(connection, tp, false);
	hold_window(connection, tp);
	tp->snd_ssthresh = INFINITE;
}

SEC("struct_ops")
void BPF_PROG(solo_init, struct sock *sk)
{
	struct connection *connection;

	connection = bpf_sk_storage_get(&connections, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
	if (!connection)
		return;
	__builtin_memset(connection, 0, sizeof(*connection));
	if (look_up(sk, &connection->way) && connection->way.paced)
		begin(connection, sk);
}

SEC("struct_ops")
void BPF_PROG(solo_acked, struct sock *sk, const struct ack_sample *sample)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct connection *connection;
	__u32 paced, segments = sample->pkts_acked;
	__s32 rtt_us = sample->rtt_us;
	bool timeout;

	connection = bpf_sk_storage_get(&connections, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
	if (!connection)
		return;
	paced = connection->way.paced;
	if (!look_up(sk, &connection->way))
		return;
	if (connection->way.paced && !paced)
		begin(connection, sk);
	else if (paced && !connection->way.paced)
		pace(sk, false);
	if (!connection->way.paced)
		return;
	if (segments) {
		solo_path(&connection->solo, &connection->way.path, connection->way.payload);
		/*
		 * The first sample becomes the floor, the least interval. It must come from the last ACK of a
		 * train, which meets no queue. A sample that had waited in a queue would keep the interval too
		 * long for ten seconds.
		 */
		if (tp->data_segs_out >= QUICK && (connection->solo.samples || !tp->packets_out))
			solo_ack(&connection->solo, &connection->way.path, tp->tcp_mstamp * US, rtt_us, segments,
				 tp->rx_opt.rcv_tsval);
		else if (tp->data_segs_out >= QUICK)
			solo_count(&connection->solo, segments);
		timeout = connection->in_timeout;
		connection->in_timeout = 0;
		/*
		 * After its last segment a train is not extended: the receiver's timer would expire before a
		 * further segment arrived. Nor is it extended where pairs are further apart than that timer: the
		 * timer then corrects the receiver's count by itself.
		 */
		if (left(connection, tp) && 2 * connection->solo.interval < TIMER + solo_gap(&connection->solo))
			connection->odd ^= segments & 1;
		if (!tp->packets_out) {
			connection->paired = tp->data_segs_out;
			connection->odd = 0;
		}
		if ((!tp->packets_out || timeout) && !left(connection, tp))
			begin_train(connection, tp, !timeout && rtt_us >= 0);
	}
	hold_window(connection, tp);
}

SEC("struct_ops")
void BPF_PROG(solo_avoid, struct sock *sk, __u32 ack, __u32 acked)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct connection *connection;

	connection = bpf_sk_storage_get(&connections, sk, 0, 0);
	if (connection && connection->way.paced) {
		/* Set again, because recovery may have ended since and have set another window. During recovery
		 * the kernel does not call this program. */
		hold_window(connection, tp);
		tp->snd_ssthresh = INFINITE;
		return;
	}
	mend_window(tp);
	tcp_reno_cong_avoid(sk, ack, acked);
}

/*
 * True if all segments in flight are empty. The kernel creates an empty segment when it takes a
 * lost answer of solo_leaving for 0 and cuts nothing off the data (shared.h). No ACK covers an
 * empty segment, so the RTO repeats it for ever while nothing else may leave.
 */
static __always_inline bool only_empty_segments(const struct tcp_sock *tp)
{
	return tp->packets_out && tp->snd_nxt == tp->snd_una;
}

/*
 * Sends the next segment behind an empty one, so that its ACK covers both. The kernel offers no
 * call that sends, but switching Nagle's algorithm off has this effect. The application's choice is
 * restored afterwards.
 *
 * Before Linux 6.10 an empty segment at the head of the queue stays there for good, so none may be
 * created here. At this rate the kernel's own number of segments is more than zero, and the answer
 * of solo_leaving does not matter. The window of one segment is the limit. An empty segment that
 * was created earlier, while the first one was in flight, still blocks these kernels.
 */
static __always_inline void send_behind_empty(struct sock *sk, struct connection *connection)
{
	int on = 1, off = 0, chosen = 0;

	if (bpf_getsockopt(sk, SOL_TCP, TCP_NODELAY, &chosen, sizeof(chosen)))
		return;
	sk->sk_pacing_rate = UNLIMITED;
	if (connection)
		connection->behind_empty = 1;
	bpf_setsockopt(sk, SOL_TCP, TCP_NODELAY, &on, sizeof(on));
	if (connection)
		connection->behind_empty = 0;
	if (!chosen)
		bpf_setsockopt(sk, SOL_TCP, TCP_NODELAY, &off, sizeof(off));
}

SEC("struct_ops")
void BPF_PROG(solo_state, struct sock *sk, __u8 state)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct connection *connection;
	__u64 now = tp->tcp_mstamp * US;

	connection = bpf_sk_storage_get(&connections, sk, 0, 0);
	if (state == TCP_CA_Loss && only_empty_segments(tp)) {
		/* The timer expired because of an empty segment. The path has lost nothing. */
		send_behind_empty(sk, connection);
		return;
	}
	if (!connection || !connection->way.paced)
		return;
	if (state == TCP_CA_Recovery) {
		solo_lost(&connection->solo, now);
	} else if (state == TCP_CA_Loss) {
		/* The kernel sends one segment. The sender is then silent until its ACK. */
		solo_timeout(&connection->solo, now);
		connection->in_timeout = 1;
		connection->train = 0;
	}
}

/* The kernel calls this program when it may be about to send a segment. Sets the wait after that
 * segment. */
SEC("struct_ops")
__u32 BPF_PROG(solo_leaving, struct sock *sk)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct connection *connection;
	__u64 allowed_at = tp->tcp_wstamp_ns, now = tp->tcp_clock_cache;
	__u64 late = now > allowed_at ? now - allowed_at : 0;
	__u64 wait, until, rate;
	__u32 sent = tp->data_segs_out, least;

	connection = bpf_sk_storage_get(&connections, sk, 0, 0);
	if (!connection || !connection->way.paced) {
		least = sk->__sk_common.skc_net.net->ipv4.sysctl_tcp_min_tso_segs;
		return ANSWER(least ? least : KERNELS_LEAST);
	}
	if (sent != connection->sent) {
		/* A segment has been sent since the last call. */
		if (is_second(connection, sent))
			connection->pair_began = connection->leaves_at;
		connection->sent = sent;
	}
	connection->leaves_at = now + (allowed_at > now ? allowed_at - now : 0);
	if (connection->behind_empty)
		return ANSWER(1);
	wait = solo_gap(&connection->solo);
	until = connection->pair_began + 2 * connection->solo.interval;
	/* The wait is never shorter than the gap. At a high rate the kernel would also take several
	 * segments at a time. */
	if (is_second(connection, sent) && until > connection->leaves_at + wait)
		wait = until - connection->leaves_at;
	/* The kernel subtracts the lateness of the segment, at most half of the wait. It is added here. */
	wait += late < wait ? late : wait;
	rate = wait ? (connection->way.payload * SECOND + wait / 2) / wait : UNLIMITED;
	if (rate < 1)
		rate = 1;
	connection->rate = rate;
	if (rate > sk->sk_max_pacing_rate)
		rate = sk->sk_max_pacing_rate;
	sk->sk_pacing_rate = rate;
	return ANSWER(1);
}

SEC("struct_ops")
__u32 BPF_PROG(solo_ssthresh, struct sock *sk)
{
	struct connection *connection = bpf_sk_storage_get(&connections, sk, 0, 0);

	if (connection && connection->way.paced)
		return ANSWER(RECOVERING);
	return ANSWER(tcp_reno_ssthresh(sk));
}

SEC("struct_ops")
__u32 BPF_PROG(solo_undo, struct sock *sk)
{
	return ANSWER(tcp_reno_undo_cwnd(sk));
}

SEC(".struct_ops")
struct tcp_congestion_ops meshpace_solo = {
	.init = (void *)solo_init,
	.pkts_acked = (void *)solo_acked,
	.cong_avoid = (void *)solo_avoid,
	.set_state = (void *)solo_state,
	.min_tso_segs = (void *)solo_leaving,
	.ssthresh = (void *)solo_ssthresh,
	.undo_cwnd = (void *)solo_undo,
	.name = "meshpace_solo",
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
	if (connection->way.paced) {
		report.interval_ns = connection->solo.interval;
		report.gap_ns = solo_gap(&connection->solo);
		report.delay_ns = connection->solo.queueing;
		report.samples = connection->solo.samples;
		report.train = connection->train;
		report.rate = connection->rate < UNLIMITED ? connection->rate : UNLIMITED;
	}
	bpf_seq_write(seq, &report, sizeof(report));
	return 0;
}
