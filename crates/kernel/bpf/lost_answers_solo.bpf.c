/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * The same of quiet trains: for a test.
 */
#define LOST_ANSWERS
#include "meshpace_solo.bpf.c"
