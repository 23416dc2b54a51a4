package flow

import "sync/atomic"

// PortMap holds a value for each port of a switch. Any number of goroutines may
// read it, without a lock, while one writes to it. Putting or deleting a port
// takes constant time, except when the table doubles. The zero value is empty.
type PortMap[T any] struct {
	table atomic.Pointer[portTable[T]]
}

// portTable is a hash table with open addressing; at least half of it is free.
type portTable[T any] struct {
	slots []atomic.Pointer[portSlot[T]] // the length is a power of two
	used  int                           // slots that are not nil
	live  int                           // slots with a value
}

// portSlot is replaced, never written to; one without a value belongs to a
// deleted port.
type portSlot[T any] struct {
	port  Port
	value *T
}

const portSlotsFirst = 16

// at returns the slot for a port; the slot is nil if there is none.
func (t *portTable[T]) at(p Port) *atomic.Pointer[portSlot[T]] {
	mask := len(t.slots) - 1
	for i := int(uint32(p)*0x9e3779b1>>8) & mask; ; i = (i + 1) & mask {
		if s := t.slots[i].Load(); s == nil || s.port == p {
			return &t.slots[i]
		}
	}
}

// Get returns the value of a port, nil if it has none.
func (m *PortMap[T]) Get(p Port) *T {
	if t := m.table.Load(); t != nil {
		if s := t.at(p).Load(); s != nil {
			return s.value
		}
	}
	return nil
}

// Put sets the value of a port.
func (m *PortMap[T]) Put(p Port, value *T) {
	t := m.table.Load()
	if t == nil || 2*(t.used+1) > len(t.slots) {
		t = m.grow(t)
	}
	slot := t.at(p)
	switch s := slot.Load(); {
	case s == nil:
		t.used++
		t.live++
	case s.value == nil:
		t.live++
	}
	slot.Store(&portSlot[T]{p, value})
}

// Delete deletes a port.
func (m *PortMap[T]) Delete(p Port) {
	t := m.table.Load()
	if t == nil {
		return
	}
	slot := t.at(p)
	if s := slot.Load(); s != nil && s.value != nil {
		slot.Store(&portSlot[T]{port: p})
		if t.live--; t.live == 0 {
			m.table.Store(nil)
		}
	}
}

// Len returns the number of ports with a value.
func (m *PortMap[T]) Len() int {
	if t := m.table.Load(); t != nil {
		return t.live
	}
	return 0
}

// Become takes over the contents of another map, which must not be used any more.
func (m *PortMap[T]) Become(other *PortMap[T]) { m.table.Store(other.table.Load()) }

// grow replaces the table by one with room for twice as many.
func (m *PortMap[T]) grow(old *portTable[T]) *portTable[T] {
	size := portSlotsFirst
	for old != nil && size < 4*(old.live+1) {
		size *= 2
	}
	t := &portTable[T]{slots: make([]atomic.Pointer[portSlot[T]], size)}
	if old != nil {
		for i := range old.slots {
			if s := old.slots[i].Load(); s != nil && s.value != nil {
				t.at(s.port).Store(s)
				t.used++
				t.live++
			}
		}
	}
	m.table.Store(t)
	return t
}
