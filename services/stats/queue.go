package stats

import "container/heap"

// queue holds the switches that wait to be read, the next one due in front.
type queue struct{ order byDue }

func (q *queue) first() *target {
	if len(q.order) == 0 {
		return nil
	}
	return q.order[0]
}

func (q *queue) add(t *target) {
	q.remove(t)
	heap.Push(&q.order, t)
}

func (q *queue) remove(t *target) {
	if t.at >= 0 {
		heap.Remove(&q.order, t.at)
	}
}

// byDue is a heap.Interface.
type byDue []*target

func (o byDue) Len() int           { return len(o) }
func (o byDue) Less(i, j int) bool { return o[i].due.Before(o[j].due) }
func (o byDue) Swap(i, j int) {
	o[i], o[j] = o[j], o[i]
	o[i].at, o[j].at = i, j
}

// Push appends; for package heap.
func (o *byDue) Push(x any) {
	t := x.(*target)
	t.at = len(*o)
	*o = append(*o, t)
}

// Pop removes the last; for package heap.
func (o *byDue) Pop() any {
	n := len(*o) - 1
	t := (*o)[n]
	(*o)[n] = nil
	*o = (*o)[:n]
	t.at = -1
	return t
}
