/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * The congestion control as a kernel has it that passes over every program with an answer: for a test.
 */
#define LOST_ANSWERS
#include "meshpace_ap.bpf.c"
