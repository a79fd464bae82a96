/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * What a congestion control is told about the way to a destination, and what holds for every connection.
 */
#ifndef MESHPACE_PATH_H
#define MESHPACE_PATH_H

#define REUSE_HOPS 4 /* hops after which a channel can be used again (AP05, section 4.3) */
#define LONGEST_RTT_US 60000000u

/* The way to a destination, as the operator or the routing tells it. */
struct path {
	__u64 rate_bps;     /* b, bit/s, 1 or more */
	__u64 link_data_ns; /* t_LLD; AP10 only */
	__u64 link_ack_ns;  /* t_LLA; AP10 only */
	__u32 hops;         /* h, 1 to 255 */
	__u32 sensing;      /* H_cs, hops; 0 if every node of the path senses the sender; AP10 only */
	__u32 always;       /* 1: paced by whatever device packets leave */
	__u32 unused;
};

/* What holds for every connection. */
struct settings {
	__u32 form;
	__u32 factor;         /* hundredths, 0 to 1000: before cov */
	__u32 initial_window; /* segments; 0 leaves the kernel's */
};

#endif
