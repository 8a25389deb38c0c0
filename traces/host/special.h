/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef KVMSIM_TRACES_HOST_SPECIAL_H
#define KVMSIM_TRACES_HOST_SPECIAL_H

#include "traces/host/host.h"

/* Lines of a trace's text that are no records. */
enum special {
	SPECIAL_NO,
	SPECIAL_BLANK,
	SPECIAL_HEADER,
	SPECIAL_RATIO,	   /* entries-in-buffer/entries-written: the loss is filled */
	SPECIAL_CPUS,	   /* cpus=N */
	SPECIAL_EMPTY_CPU, /* CPU N is empty */
	SPECIAL_LOSS,
	SPECIAL_LOSS_WORDS, /* perf's, that belong to its loss */
	SPECIAL_ELISION,
	SPECIAL_FRAME, /* => function */
	SPECIAL_CHAIN, /* a frame of perf's call chains, which belong to the record above */
};

struct special_line {
	enum special what;
	struct host_loss loss;
	uint64_t n;   /* of CPUS and EMPTY_CPU */
	bool trace;   /* only the text of a trace has that line */
	bool damaged; /* the closing bracket is missing */
	bool cut;     /* of RATIO: nothing stands behind its last number */
};

void special_read(const char *line, size_t len, struct special_line *out);

#endif
