package experiments

import (
	"bytes"
	"testing"
	"time"
)

func TestProgress(t *testing.T) {
	var b bytes.Buffer
	p := NewProgress(&b, false)
	now := time.Unix(0, 0)
	p.now = func() time.Time { return now }
	p.Begin("x", 10, 6)
	for range 4 {
		now = now.Add(3 * time.Second)
		p.Step("next")
	}
	p.End()
	want := "x: 6 of 10 samples are there already\nx: 7 of 10, next\nx: 8 of 10, 6s left, next\nx: 9 of 10, 3s left, next\nx: 10 of 10, next\n"
	if b.String() != want {
		t.Errorf("got %q, want %q", b.String(), want)
	}
	b.Reset()
	p = NewProgress(&b, true)
	p.Begin("x", 2, 0)
	p.Step("a")
	p.Say("b")
	if got, want := b.String(), "\r\x1b[Kx: 1 of 2 [###############...............], a\nx: b\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	new(Progress).Step("nobody is told")
}

// What is written where there is no terminal can be read again.
func TestReadAdvance(t *testing.T) {
	for line, want := range map[string]Advance{
		"x-1: 6 of 10 samples are there already":      {6, 10, 0},
		"x: 7 of 10, one, round 3":                    {7, 10, 0},
		"x: 8 of 10, 1m6s left, a case of 3, round 2": {8, 10, 66 * time.Second},
		"x: 10 of 10": {10, 10, 0},
		"x: no time for round 3 of 10; the same command": {},
		"x: one, round 2, failed: 3 of 4, lost":          {},
	} {
		if got, ok := ReadAdvance(line); got != want || ok != (want.Total > 0) {
			t.Errorf("%q: %v %v; want %v", line, got, ok, want)
		}
	}
}
