# shellcheck shell=sh disable=SC2154
# SPDX-License-Identifier: GPL-3.0-or-later
# The recorder's own test: pages that the guest names before it stores to them. Phase 1 stores to
# each of them twice, phase 2 to none, phase 3 again to each. No root file system.
tell_vram
tell -p "$(parameter tests)" "$vga/resource0" || give_up 'the pages cannot be locked'
