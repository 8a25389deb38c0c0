/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef KVMSIM_TESTS_MODEL_PLAY_H
#define KVMSIM_TESTS_MODEL_PLAY_H

#include "workloads/kvm/player.h"

/*
 * Plays on the model what kvm_play() plays on a real KVM: the same guest, with the same page tables
 * at the same place, under shadow paging of the preset 6.1-shadow. Of the options it looks at
 * slots, n_vcpus, sources, protocol, ring_entries, clear_chunk, thp, guest_2m, absent, warm, and at
 * the callback `round`, whose reports have their bitmaps and numbers of dirty pages. All vCPUs'
 * accesses of a round run on one, one vCPU's after the other's.
 */
int model_play(const struct kvm_player_opts *opts);

#endif
