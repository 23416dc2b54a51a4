package scp

import (
	"container/list"

	"github.com/weft-sdn/weft/flow"
)

// table keeps a limited number of values, divided among the ports of the network from
// which they come: a port that has its share loses its least recently used value; in a
// full table, the port with the most values loses one. The caller locks it.
type table[K comparable, V any] struct {
	most  int
	of    map[K]*list.Element
	ports map[flow.Location]*list.List // of *tableItem[K, V], used last first
}

type tableItem[K comparable, V any] struct {
	key   K
	at    flow.Location
	value V
}

func newTable[K comparable, V any](most int) *table[K, V] {
	return &table[K, V]{most, map[K]*list.Element{}, map[flow.Location]*list.List{}}
}

// get returns the value of a key, nil if it has none.
func (t *table[K, V]) get(k K) *V {
	if e := t.of[k]; e != nil {
		return &e.Value.(*tableItem[K, V]).value
	}
	return nil
}

// crowded reports whether a new value of a port takes the place of another.
func (t *table[K, V]) crowded(at flow.Location) bool {
	l := t.ports[at]
	return len(t.of) >= t.most || l != nil && l.Len() >= max(1, t.most/portPart)
}

// prune forgets the values that are over.
func (t *table[K, V]) prune(over func(K, *V) bool) {
	for k, e := range t.of {
		if over(k, &e.Value.(*tableItem[K, V]).value) {
			t.drop(e)
		}
	}
}

// use returns the value of a key that a port uses; fresh if it is new.
func (t *table[K, V]) use(k K, at flow.Location) (v *V, fresh bool) {
	if e := t.of[k]; e != nil {
		i := e.Value.(*tableItem[K, V])
		t.ports[i.at].MoveToFront(e)
		return &i.value, false
	}
	switch l := t.ports[at]; {
	case l != nil && l.Len() >= max(1, t.most/portPart):
		t.drop(l.Back())
	case len(t.of) >= t.most:
		for _, o := range t.ports {
			if l == nil || o.Len() > l.Len() {
				l = o
			}
		}
		t.drop(l.Back())
	}
	l := t.ports[at]
	if l == nil {
		l = list.New()
		t.ports[at] = l
	}
	i := &tableItem[K, V]{key: k, at: at}
	t.of[k] = l.PushFront(i)
	return &i.value, true
}

// drop forgets a value.
func (t *table[K, V]) drop(e *list.Element) {
	i := e.Value.(*tableItem[K, V])
	delete(t.of, i.key)
	if l := t.ports[i.at]; l.Len() == 1 {
		delete(t.ports, i.at)
	} else {
		l.Remove(e)
	}
}

// remove forgets the value of a key.
func (t *table[K, V]) remove(k K) {
	if e := t.of[k]; e != nil {
		t.drop(e)
	}
}

// all calls f with each value.
func (t *table[K, V]) all(f func(K, *V)) {
	for k, e := range t.of {
		f(k, &e.Value.(*tableItem[K, V]).value)
	}
}
