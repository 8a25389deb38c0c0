// SPDX-License-Identifier: GPL-2.0-or-later
#include "model/mmu/mmu.h"

/*
 * What a fault may need and cannot allocate under mmu_lock, each vCPU has at hand: pages for
 * tables, what goes with a shadow page, descriptors of reverse maps. Before the lock is taken, a
 * stock that has fallen below what one fault can use is filled up; so the pages for many faults are
 * cleared at once, long before they become tables.
 */

#define CAPACITY 40 /* KVM_ARCH_NR_OBJS_PER_MEMORY_CACHE */
/* Shadow pages of one fault: PT64_ROOT_MAX_LEVEL. */
#define MIN_PAGES 5
/* An entry and a parent's per level, and those of the prefetch: PTE_PREFETCH_NUM. */
#define MIN_DESCS (1 + MIN_PAGES + 8)

static void fill(struct task *t, uint16_t *stock, unsigned least, uint16_t count)
{
	if (*stock >= least)
		return;
	charge(t, count, CAPACITY - *stock);
	*stock = CAPACITY;
}

void mmu_topup(struct kvm_vcpu *v, bool indirect)
{
	struct mmu_stock *s = &v->stock;

	fill(v->task, &s->descs, MIN_DESCS, COUNT_stock_object);
	fill(v->task, &s->pages, MIN_PAGES, COUNT_stock_page);
	if (indirect)
		fill(v->task, &s->translations, MIN_PAGES, COUNT_stock_page);
	fill(v->task, &s->headers, MIN_PAGES, COUNT_stock_object);
}

static void take(uint16_t *stock)
{
	if (*stock)
		--*stock;
}

void mmu_stock_take_sp(struct kvm_vcpu *v, bool indirect)
{
	take(&v->stock.pages);
	take(&v->stock.headers);
	if (indirect)
		take(&v->stock.translations);
}

void mmu_stock_take_desc(struct task *t, const struct kvm *kvm)
{
	struct kvm_vcpu *v = task_private(t);

	/* Splits ahead of the stores have a stock of their own. */
	if (v && v->kvm == kvm)
		take(&v->stock.descs);
}
