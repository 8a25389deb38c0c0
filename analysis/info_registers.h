/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef KVMSIM_ANALYSIS_INFO_REGISTERS_H
#define KVMSIM_ANALYSIS_INFO_REGISTERS_H

#include <jansson.h>

#include "analysis/trace_info.h"

/* What `kvmsim info` says of accesses of devices. @per: of how many (transactions) the trace is:
 * they are told per one of these, too, and what is rarer than one in 200 only as a sum; 0: not
 * given. */

/* 0 or KVMSIM_ENOMEM. Nothing where there are none. */
int info_registers_print(const struct trace_info *info, uint64_t per);
json_t *info_registers_json(const struct trace_info *info, uint64_t per);

#endif
