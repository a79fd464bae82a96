/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * `quiet-train-solo` as a congestion control of the Linux kernel: segments leave in pairs, and after W of them nothing leaves until
 * all are acknowledged (docs/quiet-trains.md, "The sender alone"; crates/transport/src/train/solo.rs). The law is in solo.h.
 *
 * The window makes the silence: it is what is under way and what the train has left to send. As segments are acknowledged it
 * falls with them, so that after the last of a train nothing leaves; when nothing is under way it is W again.
 *
 * The kernel's pacing makes the spacing. It waits, after a segment, for its bytes by a rate, less what the segment left late, at most
 * half of the wait. Before every segment it asks min_tso_segs, and there the rate is set so that the wait comes out as the train wants it:
 * `gap` after the first of a pair, and after the second what is left of two intervals since the first, but no less than `gap`.
 *
 * Departures, all the kernel's: its first ten data segments of a connection are never paced, so trains are of two until they are out,
 * and of four until the first sample;
 * a short segment is followed by a proportionally shorter wait; in recovery its proportional reduction says when what is lost leaves again,
 * down to two segments under way; and when nothing comes back its own timers ask, that of tail losses after two round trips and
 * the RTO, in place of `patience`. They send one segment, not a train.
 */
#include "shared.h"

#include "solo.h"

#define INFINITE 0x7fffffffu /* the threshold of slow start, when it does not matter */
#define KERNELS_LEAST 2      /* net.ipv4.tcp_min_tso_segs, unless somebody has changed it */
#define RECOVERING 2         /* segments under way in recovery */
#define QUICK 32             /* segments at first that tell nothing: Linux acknowledges each of the first 22 or so */
#define TIMER (40 * MS)      /* the shortest of a receiver, Linux's */

/* One connection's state. */
struct connection {
	struct solo solo;
	struct way way;
	__u64 rate;       /* bytes/s, of the wait after the next segment */
	__u64 leaves_at;  /* when the next segment leaves, if it leaves at the kernel's next attempt, ns */
	__u64 pair_began; /* when the first of the last pair left */
	__u32 sent;       /* segments that had left when it was last looked at */
	__u32 began;      /* segments that had left when this train began */
	__u32 paired;     /* the same of the first pair */
	__u32 train;      /* segments of this train */
	__u32 odd;        /* 1: the receiver has acknowledged an odd number of segments of this train, or of those since all were */
	__u32 first;      /* 1: this train is one of those before the kernel paces */
	__u32 in_timeout; /* 1: nothing came back until the RTO, and nothing has since */
	__u32 behind_empty; /* 1: the next segment leaves behind an empty one, without a wait after it */
};

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct connection);
} connections SEC(".maps");

/*
 * Segments of this train that have not left. A receiver that acknowledged a single one, as for its PSH, counts the next two from there: the train
 * is a segment longer then, or its last one would wait for the receiver's timer.
 */
static __always_inline __u32 left(const struct connection *connection, const struct tcp_sock *tp)
{
	__u32 sent = tp->data_segs_out - connection->began;
	__u32 train = connection->train + (connection->train ? connection->odd : 0);

	return sent < train ? train - sent : 0;
}

/* Whether the next segment is the second of a pair, as the receiver counts. */
static __always_inline bool is_second(const struct connection *connection, __u32 sent)
{
	return (sent - connection->paired + connection->odd) & 1;
}

/* The window that lets out what is left of the train. */
static __always_inline void hold_window(const struct connection *connection, struct tcp_sock *tp)
{
	__u32 window = tp->packets_out - tp->sacked_out - tp->lost_out + tp->retrans_out + left(connection, tp);

	tp->snd_cwnd = window ? window : 1;
}

/* The next train may leave; `after` a whole one it may be longer. */
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
		/* Until a sample says how much the path bears, trains are as long as any first one. */
		connection->train = solo_next_train(&connection->solo, after && !connection->first && connection->solo.samples);
		connection->first = 0;
	}
}

/* Begins anew, as if nothing had been sent. */
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
		 * The first sample becomes the floor: it is that of the last ACK of a train, which crosses nothing. One behind a queue would hold the
		 * interval up for ten seconds.
		 */
		if (tp->data_segs_out >= QUICK && (connection->solo.samples || !tp->packets_out))
			solo_ack(&connection->solo, &connection->way.path, tp->tcp_mstamp * US, rtt_us, segments,
				 tp->rx_opt.rcv_tsval);
		else if (tp->data_segs_out >= QUICK)
			solo_count(&connection->solo, segments);
		timeout = connection->in_timeout;
		connection->in_timeout = 0;
		/*
		 * After its last segment a train is not made longer: the timer is done before a further one arrives. And where pairs are further
		 * apart than the timer takes, it brings the receiver's count back by itself.
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
		/* Again: recovery may have ended since, and have set another one. While it lasts the kernel does not come here. */
		hold_window(connection, tp);
		tp->snd_ssthresh = INFINITE;
		return;
	}
	mend_window(tp);
	tcp_reno_cong_avoid(sk, ack, acked);
}

/*
 * Whether all that is in flight are empty segments: the kernel took a lost answer of solo_leaving for 0 and cut nothing off the
 * data (shared.h). No ACK covers an empty segment, so the RTO repeats it for ever while nothing else may leave.
 */
static __always_inline bool only_empty_segments(const struct tcp_sock *tp)
{
	return tp->packets_out && tp->snd_nxt == tp->snd_una;
}

/*
 * Sends the next segment behind an empty one, whose ACK then covers both. The kernel offers no call that sends, except that
 * switching Nagle's algorithm off does. The application's choice is restored.
 *
 * Before Linux 6.10 an empty segment at the head of the queue stays there for good. So none must be cut here: at this rate the
 * kernel's own number of segments is more than none, and the answer of solo_leaving does not matter. The window, of one segment,
 * is the limit. An empty segment that was cut earlier, while the first was in flight, still blocks these kernels.
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
		/* The timer went off because of an empty segment: the path has lost nothing. */
		send_behind_empty(sk, connection);
		return;
	}
	if (!connection || !connection->way.paced)
		return;
	if (state == TCP_CA_Recovery) {
		solo_lost(&connection->solo, now);
	} else if (state == TCP_CA_Loss) {
		/* The kernel sends one segment; then silence until its ACK. */
		solo_timeout(&connection->solo, now);
		connection->in_timeout = 1;
		connection->train = 0;
	}
}

/* The kernel may be about to send a segment: sets the wait after it. */
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
		/* One has left since, when it was last asked for. */
		if (is_second(connection, sent))
			connection->pair_began = connection->leaves_at;
		connection->sent = sent;
	}
	connection->leaves_at = now + (allowed_at > now ? allowed_at - now : 0);
	if (connection->behind_empty)
		return ANSWER(1);
	wait = solo_gap(&connection->solo);
	until = connection->pair_began + 2 * connection->solo.interval;
	/* Never less than the gap: where the rate is high, the kernel also takes several segments at a time. */
	if (is_second(connection, sent) && until > connection->leaves_at + wait)
		wait = until - connection->leaves_at;
	/* The kernel takes off how late the segment is, at most half. */
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
