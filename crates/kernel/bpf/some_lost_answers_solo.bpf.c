/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * For a test: `meshpace_solo` on a kernel that skips some of the calls of programs that return a
 * value.
 */
#define SOME_LOST_ANSWERS
#include "meshpace_solo.bpf.c"
