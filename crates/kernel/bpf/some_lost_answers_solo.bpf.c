/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Quiet trains as a kernel runs them that passes over a program now and then: for a test.
 */
#define SOME_LOST_ANSWERS
#include "meshpace_solo.bpf.c"
