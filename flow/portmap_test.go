package flow

import (
	"math/rand/v2"
	"sync"
	"testing"
)

// TestPortMap compares a PortMap with a map, on random changes.
func TestPortMap(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var m PortMap[int]
	want := map[Port]int{}
	for i := range 200_000 {
		p := Port(rng.IntN(3000)) << rng.IntN(3)
		if rng.IntN(3) == 0 {
			m.Delete(p)
			delete(want, p)
		} else {
			m.Put(p, &i)
			want[p] = i
		}
		if v, there := want[p]; there != (m.Get(p) != nil) || there && *m.Get(p) != v {
			t.Fatalf("port %d: %v, want %d, %v", p, m.Get(p), v, there)
		}
	}
	if m.Len() != len(want) {
		t.Errorf("%d ports, want %d", m.Len(), len(want))
	}
	for p := range want {
		m.Delete(p)
	}
	if m.Len() != 0 || m.table.Load() != nil {
		t.Errorf("%d ports are left", m.Len())
	}
}

// TestPortMapCosts: to put a port costs the same among many as among few: all
// slots that are copied as the table grows are a few for each port.
func TestPortMapCosts(t *testing.T) {
	copies := func(n int) (total int) {
		var m PortMap[int]
		size := 0
		for p := range n {
			m.Put(Port(p), &p)
			if now := len(m.table.Load().slots); now != size {
				total, size = total+size, now
			}
		}
		return total
	}
	if few, many := copies(1000), copies(64_000); many > 100*few {
		t.Errorf("%d slots copied for 1,000 ports, %d for 64,000", few, many)
	}
	var m PortMap[int]
	v := 1
	for i := range 100_000 { // one port at a time, each with another number
		m.Put(Port(i+1), &v)
		m.Put(0, &v)
		m.Delete(Port(i + 1))
	}
	if n := len(m.table.Load().slots); n > 4*portSlotsFirst {
		t.Errorf("%d slots for one port", n)
	}
}

// TestPortMapReaders: readers find what is there while it changes.
func TestPortMapReaders(t *testing.T) {
	var m PortMap[int]
	one := 1
	m.Put(7, &one)
	var wg sync.WaitGroup
	stop := make(chan struct{})
	for range 4 {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					if m.Get(7) != &one {
						t.Error("port 7 is missing")
						return
					}
				}
			}
		})
	}
	for p := range Port(50_000) {
		m.Put(p+100, &one)
		m.Delete(p + 50)
	}
	close(stop)
	wg.Wait()
}
