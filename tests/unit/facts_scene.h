/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef KVMSIM_TESTS_FACTS_SCENE_H
#define KVMSIM_TESTS_FACTS_SCENE_H

#include "analysis/facts.h"
#include "tests/unit/harness.h"

/*
 * Streams of events made by hand, for the tests of what `kvmsim info` says of a host's trace. Times
 * are microseconds. begin(), then events in the order of the file, then done() for the facts as
 * JSON.
 */
extern struct facts *f;
extern struct host_result result;
extern struct tables tables;
extern struct facts_given given;

void begin(void);
void feed(const struct host_event *e);
struct host_event at(uint64_t us, int64_t tid, int64_t cpu, enum host_event_id id);
void plain(uint64_t us, int64_t tid, int64_t cpu, enum host_event_id id);
void leave(uint64_t us, int64_t tid, int64_t cpu, const char *reason, uint64_t info1,
	   uint64_t info2);
void enter(uint64_t us, int64_t tid, int64_t cpu, int64_t vcpu);
void fault(uint64_t us, int64_t tid, uint64_t address, uint64_t code);
void userspace(uint64_t us, int64_t tid, uint64_t number, const char *word);
void loss(int64_t cpu, uint64_t count, bool header);
void elision(void);
json_t *done(void);
void says(json_t *j, const char *key, const char *text);

#endif
