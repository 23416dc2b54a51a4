package backoff_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weft-sdn/weft/internal/backoff"
)

func TestExponential(t *testing.T) {
	b := backoff.Exponential{First: 5 * time.Second, Factor: 4, Last: 100 * time.Second}
	for range 2 {
		for n, want := range []time.Duration{5, 20, 80, 100, 100} {
			if got := b.Next(); got != want*time.Second {
				t.Errorf("pause %d: %v, want %v s", n+1, got, want)
			}
			if got := b.After(n + 1); got != want*time.Second {
				t.Errorf("after %d: %v, want %v s", n+1, got, want)
			}
		}
		b.Reset()
	}
	b = backoff.Exponential{First: 100, Last: 1 << 40}
	if b.Next() != 100 || b.Next() != 200 {
		t.Error("the factor is not 2 unless said otherwise")
	}
	if got := b.After(1 << 30); got != 1<<40 {
		t.Errorf("after very many: %v", got)
	}
}

func TestWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := backoff.Exponential{First: time.Second, Last: time.Hour}
		began := time.Now()
		for range 3 {
			if err := b.Wait(t.Context()); err != nil {
				t.Error(err)
			}
		}
		if took := time.Since(began); took != 7*time.Second {
			t.Errorf("three pauses took %v, want 7 s", took)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := backoff.Sleep(ctx, time.Minute); err != context.DeadlineExceeded {
			t.Errorf("a pause cut short: %v", err)
		}
	})
}
