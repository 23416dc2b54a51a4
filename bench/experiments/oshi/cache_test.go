package oshi

import "testing"

func TestParseLookups(t *testing.T) {
	const text = `main thread:
  packets received: 40
  packet recirculations: 0
  simple match hits: 0
  emc hits: 10
  smc hits: 2
  megaflow hits: 20
  avg. subtable lookups per megaflow hit: 1.00
  miss with success upcall: 6
  miss with failed upcall: 2
  avg. packets per output batch: 1.00
`
	l, err := parseLookups(text)
	if want := (lookups{10, 2, 20, 8}); l != want || err != nil {
		t.Errorf("%v, %v; want %v", l, err, want)
	}
	if got, want := l.percent(), (lookups{25, 5, 50, 20}); got != want {
		t.Errorf("%v percent, want %v", got, want)
	}
	if got := l.since(l).percent(); got != (lookups{}) {
		t.Errorf("%v percent of none", got)
	}
	for _, wrong := range []string{"", "  emc hits: x\n"} {
		if _, err := parseLookups(wrong); err == nil {
			t.Errorf("%q is read", wrong)
		}
	}
}
