/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * For a test: `meshpace_solo` on a kernel that skips every program that returns a value.
 */
#define LOST_ANSWERS
#include "meshpace_solo.bpf.c"
