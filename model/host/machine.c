// SPDX-License-Identifier: GPL-2.0-or-later
#include "model/host/machine.h"

#include <stdlib.h>

#include "model/counts.h"
#include "model/host/host.h"

struct machine {
	uint32_t busy, cores;
	price_t alone[N_COUNTS], shared[N_COUNTS];
	struct host_core core[];
};

static void fill_prices(struct machine *m, const struct profile *profile)
{
	uint64_t smt = profile_param(profile, "smt_permille");
	uint64_t load = profile_param(profile, "memory_load_permille");

	uint64_t threads = 2ull * m->cores;

	for (uint16_t c = 0; c < N_COUNTS; c++) {
		price_t price = profile_price(profile, c);

		m->alone[c] = price;
		m->shared[c] = price * smt / 1000;
	}
	m->alone[COUNT_tlb_walk] += m->alone[COUNT_tlb_walk] * load * (m->busy - 1) / 1000;
	m->shared[COUNT_tlb_walk] = m->alone[COUNT_tlb_walk];
	m->shared[COUNT_host_clear] = m->alone[COUNT_host_clear];
	for (uint16_t c = 0; c < N_COUNTS && m->busy > threads; c++)
		m->shared[c] = m->shared[c] * m->busy / threads;
}

int machine_create(const struct profile *profile, uint32_t cores, uint32_t busy,
		   struct machine **out)
{
	struct machine *m;

	*out = NULL;
	if (!cores)
		cores = (uint32_t)profile_param(profile, "cores");
	if (!cores || cores > busy)
		cores = busy;
	m = calloc(1, sizeof(*m) + cores * sizeof(m->core[0]));
	if (!m)
		return KVMSIM_ENOMEM;
	m->busy = busy;
	m->cores = cores;
	for (uint32_t i = 0; i < m->cores; i++)
		m->core[i].id = i;
	fill_prices(m, profile);
	*out = m;
	return 0;
}

void machine_destroy(struct machine *m)
{
	free(m);
}

const price_t *machine_prices(const struct machine *m, uint32_t i)
{
	return i % m->cores < m->busy - m->cores ? m->shared : m->alone;
}

int machine_place(struct machine *m, struct task *t, uint32_t i)
{
	struct host_task *h = host_task(t);

	if (!h)
		return KVMSIM_ENOMEM;
	h->core = &m->core[i % m->cores];
	return 0;
}
