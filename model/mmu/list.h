/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef KVMSIM_MMU_LIST_H
#define KVMSIM_MMU_LIST_H

#include <stdbool.h>
#include <stddef.h>

/* A circular list of nodes that lie inside what they link, as in the kernel. */
struct list {
	struct list *next, *prev;
};

#define list_entry(node, type, member) ((type *)(void *)((char *)(node)-offsetof(type, member)))
#define list_for_each_entry(pos, head, member)                                                     \
	for (pos = list_entry((head)->next, __typeof__(*pos), member); &pos->member != (head);     \
	     pos = list_entry(pos->member.next, __typeof__(*pos), member))

static inline void list_init(struct list *head)
{
	head->next = head->prev = head;
}

static inline bool list_empty(const struct list *head)
{
	return head->next == head;
}

static inline void list_add(struct list *node, struct list *head)
{
	node->next = head->next;
	node->prev = head;
	head->next->prev = node;
	head->next = node;
}

static inline void list_del(struct list *node)
{
	node->next->prev = node->prev;
	node->prev->next = node->next;
}

static inline void list_move(struct list *node, struct list *head)
{
	list_del(node);
	list_add(node, head);
}

#endif
