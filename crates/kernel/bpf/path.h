/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Parameters of a congestion control: those of the path to a destination, and those of all
 * connections.
 */
#ifndef MESHPACE_PATH_H
#define MESHPACE_PATH_H

#define REUSE_HOPS 4 /* hops after which the channel can be used again (AP05, section 4.3) */
#define LONGEST_RTT_US 60000000u

/* Path to a destination, as the operator or the routing protocol describes it. */
struct path {
	__u64 rate_bps;     /* b, channel rate, bit/s, 1 or more */
	__u64 link_data_ns; /* t_LLD, ns; AP10 only */
	__u64 link_ack_ns;  /* t_LLA, ns; AP10 only */
	__u32 hops;         /* h, 1 to 255 */
	__u32 sensing;      /* H_cs, hops; 0 if every node of the path senses the sender; AP10 only */
	__u32 always;       /* 1: paced, whatever device packets leave by */
	__u32 unused;
};

/* Settings of all connections. */
struct settings {
	__u32 form;
	__u32 factor;         /* factor before cov in hundredths, 0 to 1000 */
	__u32 initial_window; /* segments; 0: the kernel's initial window */
};

#endif
