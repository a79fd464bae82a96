/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * The part of the kernel's types that these programs use: only the fields that they access. The
 * loader looks the fields up by name in the BTF of the running kernel. The order and the offsets
 * here therefore have no meaning, and no BTF is needed to build.
 */
#ifndef MESHPACE_VMLINUX_H
#define MESHPACE_VMLINUX_H

typedef signed char __s8;
typedef unsigned char __u8;
typedef short __s16;
typedef unsigned short __u16;
typedef int __s32;
typedef unsigned int __u32;
typedef long long __s64;
typedef unsigned long long __u64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u64 __be64;
typedef __u32 __wsum;
typedef _Bool bool;
enum { false = 0, true = 1 };

/* include/uapi/linux/bpf.h */
enum {
	BPF_MAP_TYPE_HASH = 1,
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_LPM_TRIE = 11,
	BPF_MAP_TYPE_SK_STORAGE = 24,
};
enum { BPF_F_NO_PREALLOC = 1 };
enum { BPF_SK_STORAGE_GET_F_CREATE = 1 };

/* include/uapi/asm-generic/socket.h, include/linux/socket.h */
enum { SOL_SOCKET = 1, SO_MAX_PACING_RATE = 47, AF_INET = 2, AF_INET6 = 10 };

/* include/net/sock.h, include/uapi/linux/tcp.h */
enum { SK_PACING_NONE = 0, SK_PACING_NEEDED = 1 };
enum { TCP_CA_Recovery = 3, TCP_CA_Loss = 4 };
enum { SOL_TCP = 6, TCP_NODELAY = 1 };

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct in6_addr {
	union {
		__be32 u6_addr32[4];
	} in6_u;
};

struct ns_common {
	unsigned int inum;
};

struct netns_ipv4 {
	__u8 sysctl_tcp_min_tso_segs;
};

struct net {
	struct ns_common ns;
	struct netns_ipv4 ipv4;
};

typedef struct {
	struct net *net;
} possible_net_t;

struct sock_common {
	__be32 skc_daddr;
	__be32 skc_rcv_saddr;
	__be16 skc_dport;
	__u16 skc_num;
	short unsigned int skc_family;
	possible_net_t skc_net;
	struct in6_addr skc_v6_daddr;
	struct in6_addr skc_v6_rcv_saddr;
};

struct wireless_dev;

struct net_device {
	char name[16];
	struct wireless_dev *ieee80211_ptr; /* only in kernels with support for 802.11 */
};

struct dst_entry {
	struct net_device *dev;
};

struct sock {
	struct sock_common __sk_common;
	struct dst_entry *sk_dst_cache;
	unsigned long sk_pacing_rate;
	unsigned long sk_max_pacing_rate;
	__u32 sk_pacing_status;
};

struct tcp_options_received {
	__u32 rcv_tsval;
};

struct tcp_sock {
	__u64 tcp_wstamp_ns;
	__u64 tcp_clock_cache;
	__u64 tcp_mstamp;
	__u32 snd_una;
	__u32 snd_nxt;
	__u32 packets_out;
	__u32 sacked_out;
	__u32 lost_out;
	__u32 retrans_out;
	struct tcp_options_received rx_opt;
	__u32 mss_cache;
	__u32 snd_cwnd;
	__u32 snd_ssthresh;
	__u32 data_segs_out;
};

struct ack_sample {
	__u32 pkts_acked;
	__s32 rtt_us;
	__u32 in_flight;
};

struct tcp_congestion_ops {
	__u32 (*ssthresh)(struct sock *);
	void (*cong_avoid)(struct sock *, __u32, __u32);
	void (*set_state)(struct sock *, __u8);
	void (*pkts_acked)(struct sock *, const struct ack_sample *);
	__u32 (*min_tso_segs)(struct sock *);
	__u32 (*undo_cwnd)(struct sock *);
	void (*init)(struct sock *);
	char name[16];
	__u32 flags;
};

struct seq_file;
struct bpf_map;

struct bpf_iter_meta {
	struct seq_file *seq;
};

struct bpf_iter__bpf_sk_storage_map {
	struct bpf_iter_meta *meta;
	struct bpf_map *map;
	struct sock *sk;
	void *value;
};

#pragma clang attribute pop

#endif
