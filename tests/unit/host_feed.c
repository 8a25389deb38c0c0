// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/unit/host_feed.h"

#include <stdlib.h>
#include <string.h>

#include "tests/unit/harness.h"

static const char *const events[HOST_N_EVENTS] = {
	NULL,
	NULL,
	NULL,
#define HOST_EVENT(n) #n,
#define HOST_REST(n)
#include "traces/host/events.def"
};
static const char *const fields[HOST_N_FIELDS] = {
#define F(n) #n,
	HOST_FIELDS(F)
#undef F
};

static const char *const contexts[HOST_N_CONTEXTS] = {"unknown", "task", "softirq", "hardirq",
						      "nmi"};

static struct host_text text_of(const char *word)
{
	return (struct host_text){word, strlen(word)};
}

static void take_field(struct host_event *e, char *word)
{
	char *value = strchr(word, '=');

	CU_ASSERT_PTR_NOT_NULL_FATAL(value);
	*value++ = '\0';
	if (!strcmp(word, "r")) {
		e->reason = text_of(value);
		return;
	}
	if (!strcmp(word, "tgid")) {
		e->tgid = atoll(value);
		return;
	}
	if (!strcmp(word, "in")) {
		while (e->context < HOST_N_CONTEXTS && strcmp(value, contexts[e->context]))
			e->context++;
		CU_ASSERT_FATAL(e->context < HOST_N_CONTEXTS);
		return;
	}
	for (unsigned f = 0; f < HOST_N_FIELDS; f++) {
		if (strcmp(word, fields[f]))
			continue;
		host_set(e, f,
			 *value >= 'A' && *value <= 'Z' ? (unsigned char)*value
			 : *value == '-'		? (uint64_t)strtoll(value, NULL, 0)
							: strtoull(value, NULL, 0));
		return;
	}
	CU_FAIL_FATAL("no such field");
}

static int feed_event(const struct host_sink *sink, char *comm, char **rest, uint64_t line)
{
	struct host_event e = {.tgid = -1, .line = line, .comm = text_of(comm)};
	char *word;

	e.tid = atoll(strtok_r(NULL, " ", rest));
	e.cpu = atoll(strtok_r(NULL, " ", rest));
	word = strtok_r(NULL, " ", rest);
	e.time_ns = *word == '-' ? HOST_NO_TIME : strtoull(word, NULL, 10);
	word = strtok_r(NULL, " ", rest);
	e.name = text_of(word);
	for (unsigned i = HOST_KVM_REST + 1; i < HOST_N_EVENTS; i++)
		if (!strcmp(word, events[i]))
			e.id = i;
	while ((word = strtok_r(NULL, " ", rest)))
		take_field(&e, word);
	return sink->event ? sink->event(sink->ctx, &e) : 0;
}

static int feed_loss(const struct host_sink *sink, char **rest)
{
	struct host_loss l = {.cpu = atoll(strtok_r(NULL, " ", rest))};
	const char *count = strtok_r(NULL, " ", rest);

	l.count = count ? strtoull(count, NULL, 10) : UINT64_MAX;
	return sink->loss ? sink->loss(sink->ctx, &l) : 0;
}

int host_feed(const struct host_sink *sink, const char *text)
{
	char *copy = strdup(text), *lines, *line;
	uint64_t number = 0;
	int err = 0;

	CU_ASSERT_PTR_NOT_NULL_FATAL(copy);
	for (line = strtok_r(copy, "\n", &lines); line && !err;
	     line = strtok_r(NULL, "\n", &lines)) {
		char *rest, *word = strtok_r(line, " ", &rest);

		number++;
		if (!strcmp(word, "LOST"))
			err = feed_loss(sink, &rest);
		else if (!strcmp(word, "..."))
			err = sink->elision ? sink->elision(sink->ctx) : 0;
		else
			err = feed_event(sink, word, &rest, number);
	}
	free(copy);
	return err;
}
